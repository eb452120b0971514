package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/valyala/fasthttp"

	"webdyno.example/site/site"
)

type handler struct {
	store *site.Store
}

func (h handler) handle(ctx *fasthttp.RequestCtx) {
	route := string(ctx.Method()) + " " + string(ctx.Path())
	switch route {
	case "GET /plaintext":
		ctx.SetContentType("text/plain")
		ctx.SetBodyString("Hello, World!")
	case "GET /json":
		answer(ctx, fasthttp.StatusOK, site.Message{Message: "Hello, World!"})
	case "POST /upload":
		upload(ctx)
	default:
		if h.store == nil || !h.handleDatabase(ctx, route) {
			ctx.Error("not found", fasthttp.StatusNotFound)
		}
	}
}

func (h handler) handleDatabase(ctx *fasthttp.RequestCtx, route string) bool {
	switch route {
	case "GET /db":
		world, err := h.store.World(ctx)
		answerUnless(err, ctx, world)
	case "GET /queries":
		worlds, err := h.store.Worlds(ctx, count(ctx))
		answerUnless(err, ctx, worlds)
	case "GET /updates":
		worlds, err := h.store.UpdateWorlds(ctx, count(ctx))
		answerUnless(err, ctx, worlds)
	case "GET /fortunes":
		ctx.SetContentType("text/html; charset=utf-8")
		if err := h.store.WriteFortunes(ctx, ctx); err != nil {
			fail(ctx, err)
		}
	case "GET /items":
		page := site.PageNumber(string(ctx.QueryArgs().Peek("page")))
		items, err := h.store.Items(ctx, page)
		answerUnless(err, ctx, items)
	case "POST /items":
		h.add(ctx)
	default:
		return h.handleItem(ctx)
	}
	return true
}

func (h handler) handleItem(ctx *fasthttp.RequestCtx) bool {
	text, found := strings.CutPrefix(string(ctx.Path()), "/items/")
	if !found {
		return false
	}
	id, err := site.ParseID(text)
	if err != nil {
		fail(ctx, err)
		return true
	}
	switch string(ctx.Method()) {
	case "GET":
		h.get(ctx, id)
	case "PUT":
		if changed, ok := receive(ctx); ok {
			item, err := h.store.UpdateItem(ctx, id, changed)
			answerUnless(err, ctx, item)
		}
	case "DELETE":
		if err := h.store.DeleteItem(ctx, id); err != nil {
			fail(ctx, err)
		} else {
			ctx.SetStatusCode(fasthttp.StatusNoContent)
		}
	default:
		return false
	}
	return true
}

func (h handler) get(ctx *fasthttp.RequestCtx, id int32) {
	item, err := h.store.Item(ctx, id)
	if err != nil {
		fail(ctx, err)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderETag, item.Tag())
	if string(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) == item.Tag() {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	answer(ctx, fasthttp.StatusOK, item)
}

func (h handler) add(ctx *fasthttp.RequestCtx) {
	added, ok := receive(ctx)
	if !ok {
		return
	}
	item, err := h.store.AddItem(ctx, added)
	if err != nil {
		fail(ctx, err)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderLocation, fmt.Sprintf("/items/%d", item.ID))
	answer(ctx, fasthttp.StatusCreated, item)
}

func upload(ctx *fasthttp.RequestCtx) {
	hash := sha256.New()
	bytes, err := io.Copy(hash, ctx.RequestBodyStream())
	if err != nil {
		fail(ctx, err)
		return
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	answer(ctx, fasthttp.StatusOK, site.Upload{Bytes: bytes, SHA256: sum})
}

func count(ctx *fasthttp.RequestCtx) int {
	return site.Count(string(ctx.QueryArgs().Peek("queries")))
}

func receive(ctx *fasthttp.RequestCtx) (site.NewItem, bool) {
	body, err := io.ReadAll(ctx.RequestBodyStream())
	var item site.NewItem
	if err == nil {
		item, err = site.ParseNewItem(body)
	}
	if err != nil {
		answer(ctx, fasthttp.StatusBadRequest, site.Failure{Error: err.Error()})
		return item, false
	}
	return item, true
}

func answerUnless(err error, ctx *fasthttp.RequestCtx, value any) {
	if err != nil {
		fail(ctx, err)
		return
	}
	answer(ctx, fasthttp.StatusOK, value)
}

func answer(ctx *fasthttp.RequestCtx, status int, value any) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	json.NewEncoder(ctx).Encode(value)
}

func fail(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, site.ErrNotFound) {
		answer(ctx, fasthttp.StatusNotFound, site.Failure{Error: err.Error()})
		return
	}
	log.Print(err)
	ctx.ResetBody()
	answer(ctx, fasthttp.StatusInternalServerError, site.Failure{Error: "internal error"})
}
