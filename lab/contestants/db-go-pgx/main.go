// Command db-go-pgx serves the workloads with a database: fasthttp, pgx and its pool.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"html/template"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sort"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/valyala/fasthttp"
)

type world struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomNumber"`
}

type rating struct {
	Score int32 `json:"score"`
	Count int32 `json:"count"`
}

type item struct {
	ID       int32    `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int32    `json:"price"`
	Quantity int32    `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
}

type page struct {
	Items []item `json:"items"`
	Count int    `json:"count"`
}

type fortune struct {
	ID      int32
	Message string
}

const (
	worldSQL = "SELECT id, randomnumber FROM world WHERE id = $1"
	itemsSQL = "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count " +
		"FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
	readSQL    = "SELECT id, randomnumber FROM changing WHERE id = $1"
	writeSQL   = "UPDATE changing SET randomnumber = $2 WHERE id = $1"
	fortuneSQL = "SELECT id, message FROM fortune"
)

var fortunesPage = template.Must(template.New("fortunes").Parse(
	"<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>" +
		"<tr><th>id</th><th>message</th></tr>" +
		"{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>{{end}}" +
		"</table></body></html>"))

var pool *pgxpool.Pool

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MinConns, config.MaxConns = 8, 8
	if pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		log.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	log.Fatal(fasthttp.ListenAndServe(address, serve))
}

func serve(ctx *fasthttp.RequestCtx) {
	var err error
	switch string(ctx.Path()) {
	case "/db":
		err = dbOne(ctx)
	case "/async-db":
		err = dbRows(ctx)
	case "/queries":
		err = dbQueries(ctx)
	case "/updates":
		err = dbUpdates(ctx)
	case "/fortunes":
		err = fortunes(ctx)
	default:
		ctx.NotFound()
	}
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	}
}

func sendJSON(ctx *fasthttp.RequestCtx, value any) error {
	ctx.SetContentType("application/json")
	body, err := json.Marshal(value)
	ctx.SetBody(body)
	return err
}

func dbOne(ctx *fasthttp.RequestCtx) error {
	id, err := ctx.QueryArgs().GetUint("id")
	if err != nil {
		return err
	}
	var row world
	if err := pool.QueryRow(ctx, worldSQL, id).Scan(&row.ID, &row.RandomNumber); err != nil {
		return err
	}
	return sendJSON(ctx, &row)
}

func dbRows(ctx *fasthttp.RequestCtx) error {
	args := ctx.QueryArgs()
	rows, err := pool.Query(ctx, itemsSQL, args.GetUintOrZero("min"), args.GetUintOrZero("max"), args.GetUintOrZero("limit"))
	if err != nil {
		return err
	}
	defer rows.Close()
	items := make([]item, 0, 20)
	for rows.Next() {
		var one item
		if err := rows.Scan(&one.ID, &one.Name, &one.Category, &one.Price, &one.Quantity, &one.Active, &one.Tags,
			&one.Rating.Score, &one.Rating.Count); err != nil {
			return err
		}
		items = append(items, one)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return sendJSON(ctx, &page{items, len(items)})
}

// One batch: the statements are sent together, each is a statement of its own.
func dbQueries(ctx *fasthttp.RequestCtx) error {
	n := ctx.QueryArgs().GetUintOrZero("n")
	batch := &pgx.Batch{}
	for range n {
		batch.Queue(worldSQL, rand.IntN(10000)+1)
	}
	results := pool.SendBatch(ctx, batch)
	defer results.Close()
	rows := make([]world, n)
	for i := range rows {
		if err := results.QueryRow().Scan(&rows[i].ID, &rows[i].RandomNumber); err != nil {
			return err
		}
	}
	return sendJSON(ctx, rows)
}

// Two batches, the second of which is one transaction. In the order of the ids, so that no two requests wait for each other.
func dbUpdates(ctx *fasthttp.RequestCtx) error {
	ids := rand.Perm(10000)[:ctx.QueryArgs().GetUintOrZero("n")]
	sort.Ints(ids)
	connection, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer connection.Release()
	batch := &pgx.Batch{}
	for _, id := range ids {
		batch.Queue(readSQL, id+1)
	}
	results := connection.SendBatch(ctx, batch)
	rows := make([]world, len(ids))
	for i := range rows {
		if err := results.QueryRow().Scan(&rows[i].ID, &rows[i].RandomNumber); err != nil {
			results.Close()
			return err
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	batch = &pgx.Batch{}
	for i := range rows {
		rows[i].RandomNumber = rand.Int32N(10000) + 1
		batch.Queue(writeSQL, rows[i].ID, rows[i].RandomNumber)
	}
	if err := connection.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return sendJSON(ctx, rows)
}

func fortunes(ctx *fasthttp.RequestCtx) error {
	rows, err := pool.Query(ctx, fortuneSQL)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fortune])
	if err != nil {
		return err
	}
	found = append(found, fortune{0, "Additional fortune added at request time."})
	sort.Slice(found, func(i, j int) bool { return found[i].Message < found[j].Message })
	var page bytes.Buffer
	if err := fortunesPage.Execute(&page, found); err != nil {
		return err
	}
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(page.Bytes())
	return nil
}
