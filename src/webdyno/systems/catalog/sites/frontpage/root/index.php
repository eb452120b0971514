<?php
// A front page as newspapers have it: nine queries, some with joins, and HTML from a template.
require getenv('SITE_APP') . '/database.php';

$database = connect();
$rows = fn (string $query, array $values = []): array =>
    $database->execute_query($query, $values)->fetch_all(MYSQLI_ASSOC);

$article = 'SELECT articles.id, title, teaser, published, views, authors.name AS author,
    (SELECT COUNT(*) FROM comments WHERE article = articles.id) AS comments
    FROM articles JOIN authors ON authors.id = articles.author';

$lead = $rows("$article ORDER BY published DESC LIMIT 1")[0];
$sections = $rows('SELECT id, name FROM sections ORDER BY id');
foreach ($sections as &$section) {
    $section['articles'] = $rows(
        "$article WHERE section = ? ORDER BY published DESC LIMIT 5",
        [$section['id']],
    );
}
unset($section);
$popular = $rows("$article ORDER BY views DESC LIMIT 10");
$comments = $rows('SELECT comments.author, text, title FROM comments
    JOIN articles ON articles.id = comments.article ORDER BY written DESC, comments.id DESC LIMIT 8');

header('Content-Type: text/html; charset=UTF-8');
require getenv('SITE_APP') . '/page.php';
