<?php
// The same work as app/app.js does.
$turns = (int) getenv('TURNS');
$left = $turns;
while ($left > 0) {
    $left--;
}
header('Content-Type: text/plain;charset=UTF-8');
// Of one length, however much work it was: bodies that differ block the verdict.
printf("%9d turns\n", $turns);
