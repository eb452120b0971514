<?php $h = fn (string|int $text): string => htmlspecialchars((string) $text); ?>
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The Daily Bench</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><h1>The Daily Bench</h1>
<nav><?php foreach ($sections as $section): ?><a href="#s<?= $section['id'] ?>"><?= $h($section['name']) ?></a> <?php endforeach ?></nav>
</header>
<main>
<article class="lead">
<h2><?= $h($lead['title']) ?></h2>
<p><?= $h($lead['teaser']) ?></p>
<p class="by"><?= $h($lead['author']) ?>, <?= $h($lead['published']) ?>, <?= $lead['comments'] ?> comments</p>
</article>
<?php foreach ($sections as $section): ?>
<section id="s<?= $section['id'] ?>">
<h2><?= $h($section['name']) ?></h2>
<?php foreach ($section['articles'] as $article): ?>
<article>
<h3><?= $h($article['title']) ?></h3>
<p><?= $h($article['teaser']) ?></p>
<p class="by"><?= $h($article['author']) ?>, <?= $h($article['published']) ?>, <?= $article['comments'] ?> comments</p>
</article>
<?php endforeach ?>
</section>
<?php endforeach ?>
</main>
<aside>
<h2>Most read</h2>
<ol><?php foreach ($popular as $article): ?><li><?= $h($article['title']) ?> (<?= $h($article['views']) ?>)</li>
<?php endforeach ?></ol>
<h2>Latest comments</h2>
<ul><?php foreach ($comments as $comment): ?><li><b><?= $h($comment['author']) ?></b> on <i><?= $h($comment['title']) ?></i>: <?= $h($comment['text']) ?></li>
<?php endforeach ?></ul>
</aside>
</body>
</html>
