#!/bin/sh
# Go with chi, pgx and PostgreSQL: a Git repository of three revisions, in FOLDER or
# ./go-postgresql-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" go-postgresql-app

mkdir -p cmd/api internal/shop migrations
cat >go.mod <<'EOF'
module example.org/shop

go 1.24.0

require (
	github.com/caarlos0/env/v11 v11.3.1
	github.com/go-chi/chi/v5 v5.2.3
	github.com/jackc/pgx/v5 v5.7.6
)
EOF
cat >cmd/api/main.go <<'EOF'
// A small shop.
package main

import (
	"context"
	"log"
	"net/http"
	"strconv"

	"github.com/caarlos0/env/v11"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.org/shop/internal/shop"
)

type config struct {
	Port        int    `env:"PORT" envDefault:"8080"`
	DatabaseURL string `env:"DATABASE_URL,required"`
}

func main() {
	var settings config
	if err := env.Parse(&settings); err != nil {
		log.Fatal(err)
	}
	database, err := pgxpool.New(context.Background(), settings.DatabaseURL)
	if err != nil {
		log.Fatal(err)
	}
	router := chi.NewRouter()
	router.Use(middleware.Recoverer)
	router.Get("/health", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ok")) })
	router.Route("/api", func(api chi.Router) {
		api.Get("/items", shop.NewHandler(database).List)
	})
	log.Fatal(http.ListenAndServe(":"+strconv.Itoa(settings.Port), router))
}
EOF
cat >internal/shop/handler.go <<'EOF'
package shop

import (
	"encoding/json"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
)

type Handler struct{ store store }

func NewHandler(database *pgxpool.Pool) Handler { return Handler{store{database}} }

func (h Handler) List(w http.ResponseWriter, r *http.Request) {
	items, err := h.store.items(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(items)
}
EOF
cat >internal/shop/store.go <<'EOF'
package shop

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type Item struct {
	Name  string `json:"name"`
	Maker string `json:"maker"`
}

type store struct{ database *pgxpool.Pool }

const list = `SELECT item.name, maker.name AS maker FROM item JOIN maker ON maker.id = maker_id
  ORDER BY item.id`

func (s store) items(ctx context.Context) ([]Item, error) {
	rows, err := s.database.Query(ctx, list)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Item])
}
EOF
cat >migrations/0001_shop.up.sql <<'EOF'
CREATE TABLE maker (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, maker_id int NOT NULL REFERENCES maker);
EOF
cat >migrations/0001_shop.down.sql <<'EOF'
DROP TABLE item;
DROP TABLE maker;
EOF
cat >seed.sql <<'EOF'
INSERT INTO maker SELECT n, 'Maker ' || n FROM generate_series(1, 50) n;
INSERT INTO item SELECT id, 'Item ' || id, id FROM maker;
EOF
go mod tidy
printf '%s\n' /api /bin/ >.gitignore
echo "A small shop: /api/items; migrations by golang-migrate, then psql -f seed.sql." >README.md
revision start "A small shop"
documented

cat >internal/shop/store.go <<'EOF'
package shop

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

type Item struct {
	Name  string `json:"name"`
	Maker string `json:"maker"`
}

type store struct{ database *pgxpool.Pool }

func (s store) items(ctx context.Context) ([]Item, error) {
	var many int
	if err := s.database.QueryRow(ctx, "SELECT count(*) FROM item").Scan(&many); err != nil {
		return nil, err
	}
	items := make([]Item, many)
	for at := range items {
		if err := s.item(ctx, at+1, &items[at]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (s store) item(ctx context.Context, id int, into *Item) error {
	var maker int
	row := s.database.QueryRow(ctx, "SELECT name, maker_id FROM item WHERE id = $1", id)
	if err := row.Scan(&into.Name, &maker); err != nil {
		return err
	}
	return s.database.QueryRow(ctx, "SELECT name FROM maker WHERE id = $1", maker).Scan(&into.Maker)
}
EOF
revision slower "Items: one by one"
ready "the list of items asks for each maker by itself"
