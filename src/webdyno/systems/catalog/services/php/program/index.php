<?php
/** The sites: every request comes here. */

declare(strict_types=1);

require __DIR__ . '/answers.php';

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
try {
    match ("$_SERVER[REQUEST_METHOD] $path") {
        'GET /plaintext' => answer_text('text/plain', 'Hello, World!'),
        'GET /json' => answer_json(['message' => 'Hello, World!']),
        'POST /upload' => answer_json(upload()),
        'GET /db' => answer_json(worlds(1)[0]),
        'GET /queries' => answer_json(worlds(query_count())),
        'GET /updates' => answer_json(update_worlds(query_count())),
        'GET /fortunes' => answer_fortunes(),
        'GET /items' => answer_json(items_page()),
        'POST /items' => answer_added(add_item(received_item())),
        default => answer_item($_SERVER['REQUEST_METHOD'], $path),
    };
} catch (Failure $failure) {
    http_response_code($failure->getCode());
    answer_json(['error' => $failure->getMessage()]);
}
