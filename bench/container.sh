#!/bin/sh
# What a container costs: one static Go program in a container against the same as a plain process.
#     bench/container.sh FOLDER [flags of webdyno compare]
# FOLDER gets the program, its Dockerfile and the run. Takes Go, and Docker or, as root, Podman.
set -eu
webdyno=$(cd "$(dirname -- "$0")/.." && pwd)/dyno
mkdir -p "$1"
cd "$1"
shift

cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
EOF
cat >Dockerfile <<'EOF'
FROM scratch
COPY server /server
EXPOSE 8080
CMD ["/server"]
EOF
CGO_ENABLED=0 go build -o server main.go
exec "$webdyno" compare image:. cmd:./server "$@"
