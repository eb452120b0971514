// The sites in Echo.
package main

import (
	"context"
	"log"

	"github.com/labstack/echo/v5"

	"webdyno.example/site/site"
	"webdyno.example/site/web"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	router := echo.New()
	router.HTTPErrorHandler = fail
	router.GET("/plaintext", plaintext)
	router.GET("/json", message)
	router.POST("/upload", upload)
	if store != nil {
		it := handler{store}
		router.GET("/db", it.world)
		router.GET("/queries", it.worlds)
		router.GET("/updates", it.updates)
		router.GET("/fortunes", it.fortunes)
		items := router.Group("/items")
		items.GET("", it.items)
		items.POST("", it.add)
		items.GET("/:id", it.item)
		items.PUT("/:id", it.update)
		items.DELETE("/:id", it.remove)
	}
	log.Fatal(web.Serve(router))
}
