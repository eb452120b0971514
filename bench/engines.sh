#!/bin/sh
# Whether two revisions differ by as much in containers as they do as processes: a static Go program
# of 1 ms CPU time per request, and of 20% more, by cmd:, by Podman and by Docker.
#     bench/engines.sh FOLDER [flags of webdyno compare]
# FOLDER gets the repository and a run by each. Takes Go and root; what isn't here is excluded.
set -eu
webdyno=$(cd "$(dirname -- "$0")/.." && pwd)/dyno
mkdir "$1"
cd "$1"
shift

cat >main.go <<'END'
package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

var rounds string

func main() {
	most, _ := strconv.Atoi(rounds)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256(nil)
		for range most {
			sum = sha256.Sum256(sum[:])
		}
		fmt.Fprint(w, len(sum))
	})
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
END
cat >Dockerfile <<'END'
FROM scratch
COPY server /server
EXPOSE 8080
CMD ["/server"]
END
printf 'webdyno.toml\n/cmd/\n/podman/\n/docker/\n' >.gitignore

revision() { # $1: its tag; $2: how often it hashes
    CGO_ENABLED=0 go build -ldflags "-X main.rounds=$2" -o server main.go
    git add --all
    git -c user.name=bench -c user.email=bench@localhost commit --quiet --message="$1"
    git tag "$1"
}
git init --quiet --initial-branch=main
revision start 10000
revision slower 12000

by() { # $1: the run's folder; $2: a line of [app]; flags of compare
    printf '[app]\n%s\n\n[[requests]]\npath = "/"\n' "$2" >webdyno.toml
    folder=$1
    shift 2
    "$webdyno" compare rev:slower rev:start --set measure.decide_on=server_cpu_us -o "$folder" "$@"
}
by cmd 'start = "./server"' "$@"
for engine in podman docker; do
    if command -v "$engine" >/dev/null; then
        WEBDYNO_CONTAINERS=$engine by "$engine" 'image = "."' "$@" || echo "$engine: see above"
    fi
done
