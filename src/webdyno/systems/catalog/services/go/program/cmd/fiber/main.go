// The sites in Fiber.
package main

import (
	"context"
	"log"
	"time"

	"github.com/gofiber/fiber/v3"

	"webdyno.example/site/site"
)

const mostBytes = 64 << 20

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	keepalive, err := site.Whole("KEEPALIVE_TIMEOUT_S")
	if err != nil {
		log.Fatal(err)
	}
	app := fiber.New(fiber.Config{
		BodyLimit:         mostBytes,
		ErrorHandler:      fail,
		IdleTimeout:       time.Duration(keepalive) * time.Second,
		StreamRequestBody: true,
	})
	app.Get("/plaintext", plaintext)
	app.Get("/json", message)
	app.Post("/upload", upload)
	if store != nil {
		it := handler{store}
		app.Get("/db", it.world)
		app.Get("/queries", it.worlds)
		app.Get("/updates", it.updates)
		app.Get("/fortunes", it.fortunes)
		items := app.Group("/items")
		items.Get("/", it.items)
		items.Post("/", it.add)
		items.Get("/:id", it.item)
		items.Put("/:id", it.update)
		items.Delete("/:id", it.remove)
	}
	log.Fatal(app.Listen(site.Address(), fiber.ListenConfig{DisableStartupMessage: true}))
}
