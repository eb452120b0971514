#!/bin/sh
# Installs MediaWiki without a browser and writes its pages. $1: PHP with its options.
set -eu
cd "$SITE_ROOT"
mkdir -p "$SITE_STATE/cache"
word="$SITE_STATE/word" # everybody can read a command line
(umask 077 && printf %s "$SECRET" >"$word")
$1 maintenance/install.php --dbtype=sqlite --dbpath="$SITE_STATE" --dbname=wiki \
    --server=http://localhost --scriptpath= --lang=en --confpath="$SITE_STATE" \
    --passfile="$word" "The Bench" Admin
rm "$word" "$SITE_STATE/LocalSettings.php"
cp "$SITE_APP/LocalSettings.php" .
$1 maintenance/edit.php --user=Admin Main_Page <"$SITE_APP/main-page.wiki"
$1 maintenance/edit.php --user=Admin Benchmark <"$SITE_APP/benchmark.wiki"
$1 maintenance/rebuildLocalisationCache.php --lang=en
$1 maintenance/runJobs.php
