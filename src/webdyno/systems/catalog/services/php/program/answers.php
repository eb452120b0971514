<?php

declare(strict_types=1);

require __DIR__ . '/worlds.php';
require __DIR__ . '/items.php';

/** A request that can't be fulfilled; its code is the response's status. */
final class Failure extends Exception
{
}

/** The connection of this process, which outlives the request. */
function database(): PDO
{
    static $database = null;
    return $database ??= new PDO(
        sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE')),
        getenv('PGUSER'),
        getenv('PGPASSWORD'),
        [PDO::ATTR_PERSISTENT => true, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC],
    );
}

function answer_text(string $type, string $text): void
{
    header("Content-Type: $type");
    header('Content-Length: ' . strlen($text));
    echo $text;
}

function answer_json(array $value): void
{
    answer_text('application/json', json_encode($value, JSON_THROW_ON_ERROR));
}

function answer_fortunes(): void
{
    $fortunes = database()->query('SELECT id, message FROM fortune')->fetchAll();
    $fortunes[] = ['id' => 0, 'message' => 'Additional fortune added at request time.'];
    usort($fortunes, fn (array $a, array $b): int => strcmp($a['message'], $b['message']));
    header('Content-Type: text/html; charset=utf-8');
    require __DIR__ . '/fortunes.phtml';
}

function answer_added(array $item): void
{
    http_response_code(201);
    header("Location: /items/$item[id]");
    answer_json($item);
}

function answer_item(string $method, string $path): void
{
    if (!preg_match('~^/items/(\d{1,9})$~', $path, $matches)) {
        throw new Failure('not found', 404);
    }
    $id = (int) $matches[1];
    match ($method) {
        'GET' => answer_unless_known(item($id)),
        'PUT' => answer_json(update_item($id, received_item())),
        'DELETE' => answer_deleted($id),
        default => throw new Failure('method not allowed', 405),
    };
}

function answer_unless_known(array $item): void
{
    $tag = "\"$item[version]\"";
    header("ETag: $tag");
    if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === $tag) {
        http_response_code(304);
    } else {
        answer_json($item);
    }
}

function answer_deleted(int $id): void
{
    delete_item($id);
    http_response_code(204);
}

/** PHP has read it all by now, into memory or a file; here it comes in pieces. */
function upload(): array
{
    $hash = hash_init('sha256');
    $bytes = hash_update_stream($hash, fopen('php://input', 'rb'));
    return ['bytes' => $bytes, 'sha256' => hash_final($hash)];
}
