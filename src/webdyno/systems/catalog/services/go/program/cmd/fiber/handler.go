package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/gofiber/fiber/v3"

	"webdyno.example/site/site"
)

type handler struct {
	store *site.Store
}

func plaintext(c fiber.Ctx) error {
	return c.SendString("Hello, World!")
}

func message(c fiber.Ctx) error {
	return c.JSON(site.Message{Message: "Hello, World!"})
}

func upload(c fiber.Ctx) error {
	hash := sha256.New()
	bytes, err := io.Copy(hash, c.Request().BodyStream())
	if err != nil {
		return err
	}
	return c.JSON(site.Upload{Bytes: bytes, SHA256: hex.EncodeToString(hash.Sum(nil))})
}

func (h handler) world(c fiber.Ctx) error {
	world, err := h.store.World(c.Context())
	return answerUnless(err, c, world)
}

func (h handler) worlds(c fiber.Ctx) error {
	worlds, err := h.store.Worlds(c.Context(), site.Count(c.Query("queries")))
	return answerUnless(err, c, worlds)
}

func (h handler) updates(c fiber.Ctx) error {
	worlds, err := h.store.UpdateWorlds(c.Context(), site.Count(c.Query("queries")))
	return answerUnless(err, c, worlds)
}

func (h handler) fortunes(c fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return h.store.WriteFortunes(c.Context(), c.Response().BodyWriter())
}

func (h handler) items(c fiber.Ctx) error {
	items, err := h.store.Items(c.Context(), site.PageNumber(c.Query("page")))
	return answerUnless(err, c, items)
}

func (h handler) item(c fiber.Ctx) error {
	id, err := site.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	item, err := h.store.Item(c.Context(), id)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderETag, item.Tag())
	if c.Get(fiber.HeaderIfNoneMatch) == item.Tag() {
		return c.SendStatus(fiber.StatusNotModified)
	}
	return c.JSON(item)
}

func (h handler) add(c fiber.Ctx) error {
	added, err := receive(c)
	if err != nil {
		return err
	}
	item, err := h.store.AddItem(c.Context(), added)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderLocation, fmt.Sprintf("/items/%d", item.ID))
	return c.Status(fiber.StatusCreated).JSON(item)
}

func (h handler) update(c fiber.Ctx) error {
	changed, err := receive(c)
	if err != nil {
		return err
	}
	id, err := site.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	item, err := h.store.UpdateItem(c.Context(), id, changed)
	return answerUnless(err, c, item)
}

func (h handler) remove(c fiber.Ctx) error {
	id, err := site.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	if err := h.store.DeleteItem(c.Context(), id); err != nil {
		return err
	}
	return c.Status(fiber.StatusNoContent).Send(nil)
}

func receive(c fiber.Ctx) (site.NewItem, error) {
	item, err := site.ParseNewItem(c.Body())
	if err != nil {
		return item, fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	return item, nil
}

func answerUnless(err error, c fiber.Ctx, value any) error {
	if err != nil {
		return err
	}
	return c.JSON(value)
}

func fail(c fiber.Ctx, err error) error {
	var refused *fiber.Error
	switch {
	case errors.Is(err, site.ErrNotFound):
		return c.Status(fiber.StatusNotFound).JSON(site.Failure{Error: err.Error()})
	case errors.As(err, &refused):
		return c.Status(refused.Code).JSON(site.Failure{Error: refused.Message})
	}
	log.Print(err)
	return c.Status(fiber.StatusInternalServerError).JSON(site.Failure{Error: "internal error"})
}
