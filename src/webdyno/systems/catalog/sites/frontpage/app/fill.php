<?php
// Makes the tables of the front page and fills them with the same data each time.
require __DIR__ . '/database.php';

$sections = ['World', 'Business', 'Science', 'Culture', 'Sport', 'Opinion'];
$words = explode(' ', 'server queue cache socket thread worker kernel request answer header '
    . 'client load latency median block slot verdict bench knob stack');

$database = connect();
$database->query('CREATE TABLE sections (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL)');
$database->query('CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL)');
$database->query('CREATE TABLE articles (
    id INT PRIMARY KEY, section INT NOT NULL, author INT NOT NULL, title VARCHAR(200) NOT NULL,
    teaser TEXT NOT NULL, published DATETIME NOT NULL, views INT NOT NULL,
    KEY by_section (section, published), KEY by_time (published), KEY by_views (views))');
$database->query('CREATE TABLE comments (
    id INT PRIMARY KEY AUTO_INCREMENT, article INT NOT NULL, author VARCHAR(80) NOT NULL,
    text TEXT NOT NULL, written DATETIME NOT NULL, KEY by_article (article), KEY by_time (written))');

mt_srand(1);
$sentence = function (int $length) use ($words): string {
    $picked = array_map(fn () => $words[mt_rand(0, count($words) - 1)], range(1, $length));
    return ucfirst(implode(' ', $picked));
};
$time = fn (int $number): string => gmdate('Y-m-d H:i:s', 1_700_000_000 + $number * 1800);

$database->begin_transaction();
foreach ($sections as $id => $name) {
    $database->execute_query('INSERT INTO sections VALUES (?, ?)', [$id + 1, $name]);
}
for ($id = 1; $id <= 20; $id++) {
    $database->execute_query('INSERT INTO authors VALUES (?, ?)', [$id, "Author Number $id"]);
}
for ($id = 1; $id <= 1200; $id++) {
    $database->execute_query('INSERT INTO articles VALUES (?, ?, ?, ?, ?, ?, ?)', [
        $id, $id % count($sections) + 1, mt_rand(1, 20), $sentence(8), $sentence(40) . '.',
        $time($id), mt_rand(0, 100000),
    ]);
    for ($comment = mt_rand(0, 5); $comment > 0; $comment--) {
        $database->execute_query(
            'INSERT INTO comments (article, author, text, written) VALUES (?, ?, ?, ?)',
            [$id, 'Reader ' . mt_rand(1, 500), $sentence(15) . '.', $time($id + $comment)],
        );
    }
}
$database->commit();
