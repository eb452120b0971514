<?php
// Links without host and port: the same page has the same bytes, whichever port its server has.
ob_start(function (string $page): string {
    $escaped = str_replace('/', '\/', WP_HOME);
    return strtr($page, [
        WP_HOME . '"' => '/"',
        WP_HOME => '',
        $escaped => '',
        rawurlencode(WP_HOME) => '',
    ]);
});
