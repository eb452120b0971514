<?php
// Installs WordPress without a browser and writes 30 posts, the same each time.
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost';
require getenv('SITE_ROOT') . '/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install('The Bench', 'admin', 'admin@example.org', true, '', bin2hex(random_bytes(16)));
update_option('permalink_structure', '/%postname%/');
update_option('posts_per_page', 10);
wp_delete_post(1, true);

mt_srand(1);
$words = explode(' ', 'server queue cache socket thread worker kernel request answer header client');
$paragraph = fn (): string => '<!-- wp:paragraph --><p>' . ucfirst(implode(' ', array_map(
    fn () => $words[mt_rand(0, count($words) - 1)],
    range(1, 80),
))) . '.</p><!-- /wp:paragraph -->';

for ($number = 1; $number <= 30; $number++) {
    $at = gmdate('Y-m-d H:i:s', 1_700_000_000 + $number * 3600);
    $post = wp_insert_post([
        'post_title' => "Post number $number",
        'post_content' => implode("\n", array_map($paragraph, range(1, 6))),
        'post_status' => 'publish',
        'post_author' => 1,
        'post_date' => $at,
        'post_date_gmt' => $at,
    ], true);
    if (is_wp_error($post)) {
        fwrite(STDERR, $post->get_error_message() . "\n");
        exit(1);
    }
}
flush_rewrite_rules();
