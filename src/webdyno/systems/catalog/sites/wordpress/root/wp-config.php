<?php
// Everything that differs from start to start comes from the environment.
define('DB_NAME', 'site');
define('DB_USER', 'site');
define('DB_PASSWORD', getenv('DB_PASSWORD'));
define('DB_HOST', getenv('DB_ADDRESS'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
$table_prefix = 'wp_';

foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $use) {
    define("{$use}_KEY", hash('sha256', "$use key " . getenv('SALT')));
    define("{$use}_SALT", hash('sha256', "$use salt " . getenv('SALT')));
}

// Whatever name and port the site is asked for by, that is where it is.
define('WP_HOME', 'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost'));
define('WP_SITEURL', WP_HOME);
define('WP_DEFAULT_THEME', 'twentytwentythree');
define('WP_CONTENT_DIR', __DIR__ . '/wp-content');

// Nothing happens behind a measurement's back: no timed work, no updates, no calls to the outside.
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_DEBUG', false);
define('WP_CACHE', getenv('PAGE_CACHE') === '1');

if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
