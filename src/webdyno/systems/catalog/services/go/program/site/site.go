// Package site has what the programs share, whatever serves it: the database's rows and the rules of each site.
package site

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotFound says that no item has that id.
var ErrNotFound = errors.New("not found")

// Message is the answer of the site "json".
type Message struct {
	Message string `json:"message"`
}

// Failure is the answer to a request that can't be fulfilled.
type Failure struct {
	Error string `json:"error"`
}

// Upload is what was received.
type Upload struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Store reads and writes the database's tables.
type Store struct {
	pool *pgxpool.Pool
}

// Open connects to DATABASE_URL as soon as somebody asks; without that variable it gives nil.
func Open(ctx context.Context) (*Store, error) {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return nil, nil
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	size, err := Whole("DB_POOL")
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(min(size, math.MaxInt32))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Store{pool}, nil
}

// Whole gives a variable that is a whole number.
func Whole(variable string) (int, error) {
	value, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	return value, nil
}

// Address gives where to listen.
func Address() string {
	return os.Getenv("HOST") + ":" + os.Getenv("PORT")
}
