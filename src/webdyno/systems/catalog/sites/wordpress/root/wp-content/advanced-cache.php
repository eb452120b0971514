<?php
// A page cache by WordPress's drop-in interface: this runs before WordPress does, when WP_CACHE is
// on. Visitors without cookies get a finished page from a file, at most a minute old.
const PAGE_CACHE_S = 60;

if ($_SERVER['REQUEST_METHOD'] === 'GET' && !$_COOKIE) {
    $folder = getenv('SITE_STATE') . '/pages';
    $file = "$folder/" . hash('sha256', $_SERVER['HTTP_HOST'] . $_SERVER['REQUEST_URI']);
    if (@filemtime($file) > time() - PAGE_CACHE_S) {
        header('Content-Type: text/html; charset=UTF-8');
        readfile($file);
        exit;
    }
    ob_start(function (string $page) use ($folder, $file): string {
        if (http_response_code() === 200 && str_contains($page, '</html>')) {
            @mkdir($folder);
            $scratch = tempnam($folder, 'new');
            file_put_contents($scratch, $page);
            rename($scratch, $file); // at once: nobody reads half a page
        }
        return $page;
    });
}
