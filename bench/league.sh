#!/bin/sh
# Continues webdyno's own league on this machine: measures what is missing, as long as asked, and
# keeps what it measured in bench/results/league, from where the pages in the docs are made.
#
#   bench/league.sh 16m json,plaintext    # nothing else should run meanwhile
#   bench/league.sh 0 json                # only unpacks, and writes the results again
#
# LEAGUE is the folder of the unpacked runs; further flags of `webdyno league` may follow.
set -eu
cd "$(dirname -- "$0")/.."
time=$1 sites=$2
shift 2

league=${LEAGUE:-league} results=bench/results/league
mkdir -p "$league" "$results/runs"

for packed in "$results"/runs/*.tar.xz; do
    [ ! -e "$packed" ] || tar -xJf "$packed" -C "$league" --skip-old-files
done

if [ "$time" = 0 ]; then
    ./dyno league -o "$league" --site "$league/pages"
else
    # Sixteen rounds or more, so that ranks hold; short slots, since each round starts ten servers.
    ./dyno league -o "$league" --sites "$sites" --loads full --time "$time" --yes \
        --set measure.max_rounds=17 --set measure.slot_s=0.25 "$@" ||
        case $? in 3 | 130) ;; *) exit 1 ;; esac # some failed, and were named; or Ctrl-C
fi

# A run's folder is MACHINE/SITE-LOAD/DATE; its report is written again from its records.
(cd "$league" && find . -mindepth 3 -maxdepth 3 -type d -path './*-*/*/20*' | sed 's|^\./||') |
    while read -r run; do
        packed=$results/runs/$(printf %s "$run" | tr / +).tar.xz
        if [ ! -e "$packed" ] || [ -n "$(find "$league/$run" -newer "$packed" -print -quit)" ]; then
            tar -cJf "$packed" -C "$league" --exclude=report.html --exclude=logs "$run"
        fi
    done
cp "$league/pages/league.json" "$league/pages/league.csv" "$results"
