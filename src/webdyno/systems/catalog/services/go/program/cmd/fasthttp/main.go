// The sites on fasthttp.
package main

import (
	"context"
	"log"
	"time"

	"github.com/valyala/fasthttp"

	"webdyno.example/site/site"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	keepalive, err := site.Whole("KEEPALIVE_TIMEOUT_S")
	if err != nil {
		log.Fatal(err)
	}
	server := fasthttp.Server{
		Handler:           handler{store}.handle,
		IdleTimeout:       time.Duration(keepalive) * time.Second,
		StreamRequestBody: true,
	}
	log.Fatal(server.ListenAndServe(site.Address()))
}
