// The sites in Gin.
package main

import (
	"context"
	"log"

	"github.com/gin-gonic/gin"

	"webdyno.example/site/site"
	"webdyno.example/site/web"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	// https://gin-gonic.com/en/docs/deployment/
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(gin.Recovery())
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
