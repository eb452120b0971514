#!/bin/sh
# Go's net/http: a Git repository of three revisions, in FOLDER or ./go-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" go-app

cat >go.mod <<'EOF'
module example.org/shop

go 1.22
EOF
cat >main.go <<'EOF'
// A small shop.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

type item struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

var items = make([]item, 50)

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value)
}

func home(w http.ResponseWriter, r *http.Request) {
	reply(w, map[string]string{"shop": "open"})
}

func list(w http.ResponseWriter, r *http.Request) {
	reply(w, items)
}

func search(w http.ResponseWriter, r *http.Request) {
	found := []item{}
	for _, it := range items {
		if strings.Contains(it.Name, "7") {
			found = append(found, it)
		}
	}
	reply(w, found)
}

func main() {
	for number := range items {
		items[number] = item{number, fmt.Sprint("item ", number)}
	}
	http.HandleFunc("GET /{$}", home)
	http.HandleFunc("GET /items", list)
	http.HandleFunc("GET /search", search)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
EOF
echo /server >.gitignore
echo "A small shop: /, /items, /search." >README.md
revision start "A small shop"
documented

cat >rank.go <<'EOF'
package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID

func threadTime() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// rank takes 300 µs of CPU time.
func rank() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadTime() + 300_000; threadTime() < end; {
	}
}
EOF
sed -i '/^func search/a\	rank()' main.go
revision slower "Search: ranked results"
ready
