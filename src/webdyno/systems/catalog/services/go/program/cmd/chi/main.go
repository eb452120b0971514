// The sites on the router chi.
package main

import (
	"context"
	"log"

	"github.com/go-chi/chi/v5"

	"webdyno.example/site/site"
	"webdyno.example/site/web"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	router := chi.NewRouter()
	router.Get("/plaintext", web.Plaintext)
	router.Get("/json", web.JSON)
	router.Post("/upload", web.Upload)
	if store != nil {
		it := web.Site{Store: store}
		router.Get("/db", it.World)
		router.Get("/queries", it.Worlds)
		router.Get("/updates", it.Updates)
		router.Get("/fortunes", it.Fortunes)
		router.Route("/items", func(items chi.Router) {
			items.Get("/", it.Items)
			items.Post("/", it.AddItem)
			items.Get("/{id}", it.Item)
			items.Put("/{id}", it.UpdateItem)
			items.Delete("/{id}", it.DeleteItem)
		})
	}
	log.Fatal(web.Serve(router))
}
