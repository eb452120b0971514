// The sites on Go's standard library.
package main

import (
	"context"
	"log"
	"net/http"

	"webdyno.example/site/site"
	"webdyno.example/site/web"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plaintext", web.Plaintext)
	mux.HandleFunc("GET /json", web.JSON)
	mux.HandleFunc("POST /upload", web.Upload)
	if store != nil {
		it := web.Site{Store: store}
		mux.HandleFunc("GET /db", it.World)
		mux.HandleFunc("GET /queries", it.Worlds)
		mux.HandleFunc("GET /updates", it.Updates)
		mux.HandleFunc("GET /fortunes", it.Fortunes)
		mux.HandleFunc("GET /items", it.Items)
		mux.HandleFunc("POST /items", it.AddItem)
		mux.HandleFunc("GET /items/{id}", it.Item)
		mux.HandleFunc("PUT /items/{id}", it.UpdateItem)
		mux.HandleFunc("DELETE /items/{id}", it.DeleteItem)
	}
	log.Fatal(web.Serve(mux))
}
