<?php
$wgSitename = 'The Bench';
$wgScriptPath = '';
$wgResourceBasePath = '';
$wgUsePathInfo = false;
// Whatever name and port the wiki is asked for by, that is where it is.
$wgServer = WebRequest::detectServer();

// The same page has the same bytes each time and on every port: without host, time and number.
WebRequest::overrideRequestId('bench');
$wgEnableParserLimitReporting = false;
ob_start(function (string $page) use ($wgServer): string {
    $page = str_replace($wgServer, '', $page);
    $page = preg_replace('/"wgBackendResponseTime":\d+/', '"wgBackendResponseTime":0', $page);
    $page = preg_replace('/<!-- Saved in parser cache .*?-->/s', '', $page);
    if (preg_grep('/^content-length:/i', headers_list())) {
        header('Content-Length: ' . strlen($page));
    }
    return $page;
});

$wgDBtype = 'sqlite';
$wgDBname = 'wiki';
$wgSQLiteDataDir = getenv('SITE_STATE');
$wgCacheDirectory = getenv('SITE_STATE') . '/cache';
$wgSecretKey = getenv('SECRET');

// Caches in the memory that PHP's processes share, as MediaWiki recommends. In the database they
// would be written to by every request, and SQLite has one writer at a time.
$wgMainCacheType = CACHE_ACCEL;
$wgParserCacheType = CACHE_ACCEL;
$wgMessageCacheType = CACHE_ACCEL;
$wgSessionCacheType = CACHE_ACCEL;
$wgResourceLoaderUseObjectCacheForDeps = true;

// Nothing happens behind a measurement's back.
$wgJobRunRate = 0;
$wgEnableUploads = false;
$wgPingback = false;
$wgLanguageCode = 'en';
wfLoadSkin('Vector');
$wgDefaultSkin = 'vector';
