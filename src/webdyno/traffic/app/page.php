<?php
// A page that takes so much CPU time, whatever the machine; app.js makes the same one.

const LINE = "This page is made up: it took as long as the one in the log did.\n";

function cpu_ms(): float
{
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1e3
        + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e3;
}

function page(float $cpu_ms, int $bytes): void
{
    $until = cpu_ms() + $cpu_ms;
    do {
        for ($turn = 0; $turn < 100; $turn++);
    } while (cpu_ms() < $until);
    header('Content-Type: text/html; charset=UTF-8');
    header("Content-Length: $bytes");
    echo substr(str_repeat(LINE, intdiv($bytes, strlen(LINE)) + 1), 0, $bytes);
}
