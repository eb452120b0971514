package site

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

const (
	readWorld   = "SELECT id, randomnumber FROM world WHERE id = $1"
	updateWorld = "UPDATE world SET randomnumber = $2 WHERE id = $1"
)

// World is a row of that table.
type World struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomNumber"`
}

// Count gives the number of queries that a request asks for: from 1 to 500.
func Count(text string) int {
	count, _ := strconv.Atoi(text) // 0 if it is no number, the largest if it is larger than that
	return min(max(count, 1), 500)
}

func random() int32 {
	return rand.Int32N(10_000) + 1
}

// World reads a random row.
func (store *Store) World(ctx context.Context) (World, error) {
	var world World
	err := store.pool.QueryRow(ctx, readWorld, random()).Scan(&world.ID, &world.RandomNumber)
	return world, err
}

// Worlds reads that many random rows, a statement each.
func (store *Store) Worlds(ctx context.Context, count int) ([]World, error) {
	worlds := make([]World, count)
	batch := &pgx.Batch{}
	for i := range worlds {
		batch.Queue(readWorld, random()).QueryRow(func(row pgx.Row) error {
			return row.Scan(&worlds[i].ID, &worlds[i].RandomNumber)
		})
	}
	return worlds, store.pool.SendBatch(ctx, batch).Close()
}

// UpdateWorlds reads that many random rows and writes a new number into each.
func (store *Store) UpdateWorlds(ctx context.Context, count int) ([]World, error) {
	worlds, err := store.Worlds(ctx, count)
	if err != nil {
		return nil, err
	}
	// Transactions that lock rows in the same order can't block each other.
	slices.SortStableFunc(worlds, func(a, b World) int { return cmp.Compare(a.ID, b.ID) })
	batch := &pgx.Batch{} // one transaction
	for i := range worlds {
		worlds[i].RandomNumber = random()
		batch.Queue(updateWorld, worlds[i].ID, worlds[i].RandomNumber)
	}
	return worlds, store.pool.SendBatch(ctx, batch).Close()
}
