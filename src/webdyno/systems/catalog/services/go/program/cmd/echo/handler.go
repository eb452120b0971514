package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/labstack/echo/v5"

	"webdyno.example/site/site"
)

type handler struct {
	store *site.Store
}

func plaintext(c *echo.Context) error {
	return c.String(http.StatusOK, "Hello, World!")
}

func message(c *echo.Context) error {
	return c.JSON(http.StatusOK, site.Message{Message: "Hello, World!"})
}

func upload(c *echo.Context) error {
	hash := sha256.New()
	bytes, err := io.Copy(hash, c.Request().Body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, site.Upload{Bytes: bytes, SHA256: hex.EncodeToString(hash.Sum(nil))})
}

func (h handler) world(c *echo.Context) error {
	world, err := h.store.World(c.Request().Context())
	return answerUnless(err, c, world)
}

func (h handler) worlds(c *echo.Context) error {
	worlds, err := h.store.Worlds(c.Request().Context(), site.Count(c.QueryParam("queries")))
	return answerUnless(err, c, worlds)
}

func (h handler) updates(c *echo.Context) error {
	worlds, err := h.store.UpdateWorlds(c.Request().Context(), site.Count(c.QueryParam("queries")))
	return answerUnless(err, c, worlds)
}

func (h handler) fortunes(c *echo.Context) error {
	c.Response().Header().Set("Content-Type", "text/html; charset=utf-8")
	return h.store.WriteFortunes(c.Request().Context(), c.Response())
}

func (h handler) items(c *echo.Context) error {
	items, err := h.store.Items(c.Request().Context(), site.PageNumber(c.QueryParam("page")))
	return answerUnless(err, c, items)
}

func (h handler) item(c *echo.Context) error {
	id, err := site.ParseID(c.Param("id"))
	if err != nil {
		return err
	}
	item, err := h.store.Item(c.Request().Context(), id)
	if err != nil {
		return err
	}
	c.Response().Header().Set("ETag", item.Tag())
	if c.Request().Header.Get("If-None-Match") == item.Tag() {
		return c.NoContent(http.StatusNotModified)
	}
	return c.JSON(http.StatusOK, item)
}

func (h handler) add(c *echo.Context) error {
	added, err := receive(c)
	if err != nil {
		return err
	}
	item, err := h.store.AddItem(c.Request().Context(), added)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", fmt.Sprintf("/items/%d", item.ID))
	return c.JSON(http.StatusCreated, item)
}

func (h handler) update(c *echo.Context) error {
	changed, err := receive(c)
	if err != nil {
		return err
	}
	id, err := site.ParseID(c.Param("id"))
	if err != nil {
		return err
	}
	item, err := h.store.UpdateItem(c.Request().Context(), id, changed)
	return answerUnless(err, c, item)
}

func (h handler) remove(c *echo.Context) error {
	id, err := site.ParseID(c.Param("id"))
	if err != nil {
		return err
	}
	if err := h.store.DeleteItem(c.Request().Context(), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func receive(c *echo.Context) (site.NewItem, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, 1<<20))
	if err == nil {
		var item site.NewItem
		if item, err = site.ParseNewItem(body); err == nil {
			return item, nil
		}
	}
	return site.NewItem{}, echo.NewHTTPError(http.StatusBadRequest, err.Error())
}

func answerUnless(err error, c *echo.Context, value any) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, value)
}

func fail(c *echo.Context, err error) {
	var refused *echo.HTTPError
	switch {
	case errors.Is(err, site.ErrNotFound):
		c.JSON(http.StatusNotFound, site.Failure{Error: err.Error()})
	case errors.As(err, &refused):
		c.JSON(refused.Code, site.Failure{Error: refused.Message})
	default:
		log.Print(err)
		c.JSON(http.StatusInternalServerError, site.Failure{Error: "internal error"})
	}
}
