<?php
/** Rows of the table world. */

declare(strict_types=1);

/** How many rows a request asks for: from 1 to 500. */
function query_count(): int
{
    return min(max((int) filter_var($_GET['queries'] ?? 1, FILTER_VALIDATE_INT), 1), 500);
}

/** Reads that many random rows, a statement each. */
function worlds(int $count): array
{
    $statement = database()->prepare('SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = ?');
    $worlds = [];
    for ($i = 0; $i < $count; $i++) {
        $statement->execute([random_int(1, 10_000)]);
        $worlds[] = $statement->fetch();
    }
    return $worlds;
}

/** Reads that many random rows and writes a new number into each. */
function update_worlds(int $count): array
{
    $worlds = worlds($count);
    // Transactions that lock rows in the same order can't block each other.
    usort($worlds, fn (array $a, array $b): int => $a['id'] <=> $b['id']);
    $database = database();
    $database->beginTransaction();
    $statement = $database->prepare('UPDATE world SET randomnumber = ? WHERE id = ?');
    foreach ($worlds as &$world) {
        $world['randomNumber'] = random_int(1, 10_000);
        $statement->execute([$world['randomNumber'], $world['id']]);
    }
    $database->commit();
    return $worlds;
}
