<?php
$wgSitename = 'The Bench';
$wgScriptPath = '';
$wgResourceBasePath = '';
$wgUsePathInfo = false;
// Whatever name and port the wiki is asked for by, that is where it is.
$wgServer = WebRequest::detectServer();

// The same page has the same bytes each time and on every port: without host, time and number.
WebRequest::overrideRequestId('bench');
ob_start(fn (string $page): string => preg_replace(
    '/"wgBackendResponseTime":\d+/',
    '"wgBackendResponseTime":0',
    str_replace($wgServer, '', $page),
));

$wgDBtype = 'sqlite';
$wgDBname = 'wiki';
$wgSQLiteDataDir = getenv('SITE_STATE');
$wgCacheDirectory = getenv('SITE_STATE') . '/cache';
$wgSecretKey = getenv('SECRET');

// Nothing happens behind a measurement's back.
$wgJobRunRate = 0;
$wgEnableUploads = false;
$wgPingback = false;
$wgLanguageCode = 'en';
wfLoadSkin('Vector');
$wgDefaultSkin = 'vector';
