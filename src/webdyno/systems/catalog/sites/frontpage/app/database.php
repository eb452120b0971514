<?php
/** Connects to the site's database, which the environment tells of. */
function connect(): mysqli
{
    mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    $socket = getenv('DB_SOCKET');
    $database = new mysqli(
        $socket ? 'localhost' : getenv('DB_HOST'),
        'site',
        getenv('DB_PASSWORD'),
        'site',
        (int) getenv('DB_PORT'),
        $socket ?: null,
    );
    $database->set_charset('utf8mb4');
    return $database;
}
