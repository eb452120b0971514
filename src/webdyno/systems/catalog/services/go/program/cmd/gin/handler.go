package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/gin-gonic/gin"

	"webdyno.example/site/site"
)

type handler struct {
	store *site.Store
}

func plaintext(c *gin.Context) {
	c.String(http.StatusOK, "Hello, World!")
}

func message(c *gin.Context) {
	c.JSON(http.StatusOK, site.Message{Message: "Hello, World!"})
}

func upload(c *gin.Context) {
	hash := sha256.New()
	bytes, err := io.Copy(hash, c.Request.Body)
	sum := hex.EncodeToString(hash.Sum(nil))
	answerUnless(err, c, site.Upload{Bytes: bytes, SHA256: sum})
}

func (h handler) world(c *gin.Context) {
	world, err := h.store.World(c.Request.Context())
	answerUnless(err, c, world)
}

func (h handler) worlds(c *gin.Context) {
	worlds, err := h.store.Worlds(c.Request.Context(), site.Count(c.Query("queries")))
	answerUnless(err, c, worlds)
}

func (h handler) updates(c *gin.Context) {
	worlds, err := h.store.UpdateWorlds(c.Request.Context(), site.Count(c.Query("queries")))
	answerUnless(err, c, worlds)
}

func (h handler) fortunes(c *gin.Context) {
	c.Header("Content-Type", "text/html; charset=utf-8")
	if err := h.store.WriteFortunes(c.Request.Context(), c.Writer); err != nil {
		fail(c, err)
	}
}

func (h handler) items(c *gin.Context) {
	items, err := h.store.Items(c.Request.Context(), site.PageNumber(c.Query("page")))
	answerUnless(err, c, items)
}

func (h handler) item(c *gin.Context) {
	id, err := site.ParseID(c.Param("id"))
	if err != nil {
		fail(c, err)
		return
	}
	item, err := h.store.Item(c.Request.Context(), id)
	if err != nil {
		fail(c, err)
		return
	}
	c.Header("ETag", item.Tag())
	if c.GetHeader("If-None-Match") == item.Tag() {
		c.Status(http.StatusNotModified)
		return
	}
	c.JSON(http.StatusOK, item)
}

func (h handler) add(c *gin.Context) {
	added, ok := receive(c)
	if !ok {
		return
	}
	item, err := h.store.AddItem(c.Request.Context(), added)
	if err != nil {
		fail(c, err)
		return
	}
	c.Header("Location", fmt.Sprintf("/items/%d", item.ID))
	c.JSON(http.StatusCreated, item)
}

func (h handler) update(c *gin.Context) {
	changed, ok := receive(c)
	if !ok {
		return
	}
	id, err := site.ParseID(c.Param("id"))
	if err != nil {
		fail(c, err)
		return
	}
	item, err := h.store.UpdateItem(c.Request.Context(), id, changed)
	answerUnless(err, c, item)
}

func (h handler) remove(c *gin.Context) {
	id, err := site.ParseID(c.Param("id"))
	if err == nil {
		err = h.store.DeleteItem(c.Request.Context(), id)
	}
	if err != nil {
		fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

func receive(c *gin.Context) (site.NewItem, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, 1<<20))
	var item site.NewItem
	if err == nil {
		item, err = site.ParseNewItem(body)
	}
	if err != nil {
		c.JSON(http.StatusBadRequest, site.Failure{Error: err.Error()})
		return item, false
	}
	return item, true
}

func answerUnless(err error, c *gin.Context, value any) {
	if err != nil {
		fail(c, err)
		return
	}
	c.JSON(http.StatusOK, value)
}

func fail(c *gin.Context, err error) {
	if errors.Is(err, site.ErrNotFound) {
		c.JSON(http.StatusNotFound, site.Failure{Error: err.Error()})
		return
	}
	log.Print(err)
	c.JSON(http.StatusInternalServerError, site.Failure{Error: "internal error"})
}
