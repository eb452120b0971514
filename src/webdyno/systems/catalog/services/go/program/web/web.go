// Package web has the handlers of net/http, whatever routes requests to them.
package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"webdyno.example/site/site"
)

// Site answers requests.
type Site struct {
	Store *site.Store
}

// Serve listens until it fails or is killed.
func Serve(handler http.Handler) error {
	keepalive, err := site.Whole("KEEPALIVE_TIMEOUT_S")
	if err != nil {
		return err
	}
	server := http.Server{
		Addr:        site.Address(),
		Handler:     handler,
		IdleTimeout: time.Duration(keepalive) * time.Second,
	}
	return server.ListenAndServe()
}

// Plaintext answers by a constant text.
func Plaintext(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "Hello, World!")
}

// JSON answers by a small object.
func JSON(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, site.Message{Message: "Hello, World!"})
}

// Upload counts and hashes what it is sent.
func Upload(w http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	bytes, err := io.Copy(hash, r.Body)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, site.Upload{Bytes: bytes, SHA256: hex.EncodeToString(hash.Sum(nil))})
}

// World answers by a random row.
func (s Site) World(w http.ResponseWriter, r *http.Request) {
	world, err := s.Store.World(r.Context())
	answerUnless(err, w, world)
}

// Worlds answers by random rows.
func (s Site) Worlds(w http.ResponseWriter, r *http.Request) {
	worlds, err := s.Store.Worlds(r.Context(), site.Count(r.FormValue("queries")))
	answerUnless(err, w, worlds)
}

// Updates changes random rows.
func (s Site) Updates(w http.ResponseWriter, r *http.Request) {
	worlds, err := s.Store.UpdateWorlds(r.Context(), site.Count(r.FormValue("queries")))
	answerUnless(err, w, worlds)
}

// Fortunes answers by a page.
func (s Site) Fortunes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := s.Store.WriteFortunes(r.Context(), w); err != nil {
		fail(w, err)
	}
}

// Items answers by a page of the list of items.
func (s Site) Items(w http.ResponseWriter, r *http.Request) {
	items, err := s.Store.Items(r.Context(), site.PageNumber(r.FormValue("page")))
	answerUnless(err, w, items)
}

// Item answers by one item, unless the client has that version.
func (s Site) Item(w http.ResponseWriter, r *http.Request) {
	id, err := site.ParseID(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	item, err := s.Store.Item(r.Context(), id)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", item.Tag())
	if r.Header.Get("If-None-Match") == item.Tag() {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer(w, http.StatusOK, item)
}

// AddItem adds an item.
func (s Site) AddItem(w http.ResponseWriter, r *http.Request) {
	added, ok := receive(w, r)
	if !ok {
		return
	}
	item, err := s.Store.AddItem(r.Context(), added)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Location", fmt.Sprintf("/items/%d", item.ID))
	answer(w, http.StatusCreated, item)
}

// UpdateItem changes an item.
func (s Site) UpdateItem(w http.ResponseWriter, r *http.Request) {
	changed, ok := receive(w, r)
	if !ok {
		return
	}
	id, err := site.ParseID(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	item, err := s.Store.UpdateItem(r.Context(), id, changed)
	answerUnless(err, w, item)
}

// DeleteItem removes an item.
func (s Site) DeleteItem(w http.ResponseWriter, r *http.Request) {
	id, err := site.ParseID(r.PathValue("id"))
	if err == nil {
		err = s.Store.DeleteItem(r.Context(), id)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func receive(w http.ResponseWriter, r *http.Request) (site.NewItem, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		var item site.NewItem
		if item, err = site.ParseNewItem(body); err == nil {
			return item, true
		}
	}
	answer(w, http.StatusBadRequest, site.Failure{Error: err.Error()})
	return site.NewItem{}, false
}

func answerUnless(err error, w http.ResponseWriter, value any) {
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, value)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, site.ErrNotFound) {
		answer(w, http.StatusNotFound, site.Failure{Error: err.Error()})
		return
	}
	log.Print(err)
	answer(w, http.StatusInternalServerError, site.Failure{Error: "internal error"})
}
