<?php
/** Rows of the table item. */

declare(strict_types=1);

const PER_PAGE = 20;
const LARGEST = 2_147_483_647;

function items_page(): array
{
    $page = min(max((int) filter_var($_GET['page'] ?? 1, FILTER_VALIDATE_INT), 1), LARGEST);
    $total = database()->query('SELECT count(*) FROM item')->fetchColumn();
    $items = rows(
        'SELECT id, name, price, version FROM item ORDER BY id LIMIT ? OFFSET ?',
        PER_PAGE,
        ($page - 1) * PER_PAGE,
    );
    return ['page' => $page, 'pages' => (int) ceil($total / PER_PAGE), 'total' => $total, 'items' => $items];
}

function item(int $id): array
{
    return one('SELECT id, name, price, version FROM item WHERE id = ?', $id);
}

function add_item(array $item): array
{
    return one('INSERT INTO item (name, price) VALUES (?, ?) RETURNING id, name, price, version', ...$item);
}

function update_item(int $id, array $item): array
{
    return one(
        'UPDATE item SET name = ?, price = ?, version = version + 1 WHERE id = ? RETURNING id, name, price, version',
        ...[...$item, $id],
    );
}

function delete_item(int $id): void
{
    one('DELETE FROM item WHERE id = ? RETURNING id', $id);
}

/** Name and price of an item that a client sent. */
function received_item(): array
{
    $item = json_decode(file_get_contents('php://input'), true);
    $name = is_array($item) ? $item['name'] ?? null : null;
    $price = is_array($item) ? $item['price'] ?? null : null;
    if (!is_string($name) || !preg_match('/^.{1,100}$/Dsu', $name)) {
        throw new Failure('name must have 1 to 100 characters', 400);
    }
    if (!is_int($price) || $price < 0 || $price > LARGEST) {
        throw new Failure('price must be a whole number, 0 or more', 400);
    }
    return [$name, $price];
}

function rows(string $sql, mixed ...$values): array
{
    $statement = database()->prepare($sql);
    $statement->execute($values);
    return $statement->fetchAll();
}

function one(string $sql, mixed ...$values): array
{
    return rows($sql, ...$values)[0] ?? throw new Failure('not found', 404);
}
