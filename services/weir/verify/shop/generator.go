package shop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind names what a transaction stands for.
type Kind string

// The kinds of transactions, in no order.
const (
	Stock       Kind = "stock"       // the first products and customers
	Register    Kind = "register"    // a new customer
	Profile     Kind = "profile"     // a customer's JSON, tags, active flag
	Reprice     Kind = "reprice"     // a product's price; its description stays out of line
	Describe    Kind = "describe"    // a product's description and picture
	Rename      Kind = "rename"      // a product's text key
	Place       Kind = "place"       // an order, its items, the products' stock
	Advance     Kind = "advance"     // an order's status
	Renumber    Kind = "renumber"    // an order's key, which cascades to its items
	Cancel      Kind = "cancel"      // an order and, by cascade, its items
	Campaign    Kind = "campaign"    // one statement over many customers
	Abandon     Kind = "abandon"     // an order that is rolled back
	SecondThink Kind = "secondthink" // an order of which one item is rolled back to a savepoint
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{
		Stock, Register, Profile, Reprice, Describe, Rename, Place,
		Advance, Renumber, Cancel, Campaign, Abandon, SecondThink,
	}
}

// Statement is one SQL statement with its arguments.
type Statement struct {
	SQL  string
	Args []any
}

// Transaction is a sequence of statements that commit together, or are rolled
// back together when Rollback is set.
type Transaction struct {
	Kind       Kind
	Statements []Statement
	Rollback   bool
}

// Generator draws the transactions of one shop. It is not safe for several
// goroutines: their order is part of the result.
type Generator struct {
	schema string
	rng    *rand.Rand
	now    time.Time // the shop's own clock

	customers []int64
	products  []product
	orders    []order
	lastID    int64 // of customers and orders
	stocked   bool
}

type product struct {
	sku   string
	cents int64
}

type order struct {
	id     int64
	status int
}

// statuses of an order, in the order it goes through them.
var statuses = [...]string{"new", "paid", "packed", "shipped", "delivered"}

// New returns a generator for an empty shop in the schema shop.
func New(seed uint64) *Generator { return In("shop", seed) }

// In returns a generator for an empty shop in another schema, whose name needs no quotes.
func In(schema string, seed uint64) *Generator {
	return &Generator{
		schema: schema,
		rng:    rand.New(rand.NewPCG(seed, 0x5e09)),
		now:    time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC),
	}
}

// Next draws the next transaction. The first one fills the shelves.
func (g *Generator) Next() Transaction {
	tx := g.next()
	for i := range tx.Statements {
		tx.Statements[i].SQL = in(g.schema, tx.Statements[i].SQL)
	}
	return tx
}

func (g *Generator) next() Transaction {
	g.now = g.now.Add(time.Duration(1+g.rng.IntN(90_000)) * time.Millisecond)
	if !g.stocked {
		g.stocked = true
		return g.stock(200, 100)
	}
	// Out of 100. What needs an order places one when there is none.
	switch n := g.rng.IntN(100); {
	case n < 34:
		return g.place(Place)
	case n < 52:
		return g.withOrder(g.advance)
	case n < 60:
		return g.register()
	case n < 68:
		return g.profile()
	case n < 76:
		return g.reprice()
	case n < 79:
		return g.describe()
	case n < 81:
		return g.rename()
	case n < 86:
		return g.withOrder(g.renumber)
	case n < 92:
		return g.withOrder(g.cancel)
	case n < 94:
		return g.campaign()
	case n < 97:
		return g.abandon()
	default:
		return g.place(SecondThink)
	}
}

func (g *Generator) withOrder(draw func() Transaction) Transaction {
	if len(g.orders) == 0 {
		return g.place(Place)
	}
	return draw()
}

func (g *Generator) stock(products, customers int) Transaction {
	tx := Transaction{Kind: Stock}
	for range products {
		p := product{sku: fmt.Sprintf("SKU-%06d", len(g.products)), cents: 100 + g.rng.Int64N(50_000)}
		g.products = append(g.products, p)
		tx.add(`INSERT INTO shop.products (sku, ean, name, price, stock, weight_kg, launched, thumbnail, description)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			p.sku, g.uuid(), "Thing "+g.words(2), money(p.cents), g.rng.IntN(1000),
			g.rng.Float64()*40, g.now.AddDate(0, 0, -g.rng.IntN(3000)), g.bytes(64), g.text(4000))
	}
	for range customers {
		g.addCustomer(&tx)
	}
	return tx
}

func (g *Generator) addCustomer(tx *Transaction) {
	g.lastID++
	id := g.lastID
	g.customers = append(g.customers, id)
	var country any
	if g.rng.IntN(5) > 0 {
		country = pick(g.rng, []string{"DE", "FR", "JP", "BR", "ZA", "IN"})
	}
	tx.add(`INSERT INTO shop.customers (id, email, name, country, created_at, profile, tags)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		id, fmt.Sprintf("c%d@example.org", id), g.name(), country, g.now, g.profileJSON(), g.tags())
}

func (g *Generator) register() Transaction {
	tx := Transaction{Kind: Register}
	g.addCustomer(&tx)
	return tx
}

func (g *Generator) profile() Transaction {
	tx := Transaction{Kind: Profile}
	tx.add("UPDATE shop.customers SET profile = $2, tags = $3, active = $4 WHERE id = $1",
		pick(g.rng, g.customers), g.profileJSON(), g.tags(), g.rng.IntN(4) > 0)
	return tx
}

func (g *Generator) reprice() Transaction {
	p := &g.products[g.rng.IntN(len(g.products))]
	p.cents = 100 + g.rng.Int64N(50_000)
	tx := Transaction{Kind: Reprice}
	tx.add("UPDATE shop.products SET price = $2 WHERE sku = $1", p.sku, money(p.cents))
	return tx
}

func (g *Generator) describe() Transaction {
	tx := Transaction{Kind: Describe}
	tx.add("UPDATE shop.products SET description = $2, thumbnail = $3, weight_kg = $4 WHERE sku = $1",
		pick(g.rng, g.products).sku, g.text(3000+g.rng.IntN(6000)), g.bytes(32+g.rng.IntN(64)), g.rng.Float64()*40)
	return tx
}

func (g *Generator) rename() Transaction {
	p := &g.products[g.rng.IntN(len(g.products))]
	before := p.sku
	g.lastID++
	p.sku = fmt.Sprintf("SKU-%06d-%d", g.rng.IntN(1_000_000), g.lastID)
	tx := Transaction{Kind: Rename}
	tx.add("UPDATE shop.products SET sku = $2 WHERE sku = $1", before, p.sku)
	return tx
}

// place draws an order. As a SecondThink it has one item more for a while.
func (g *Generator) place(kind Kind) Transaction {
	tx := Transaction{Kind: kind}
	items, total := g.items()
	g.lastID++
	o := order{id: g.lastID}
	g.orders = append(g.orders, o)
	tx.addOrder(g, o.id, total)
	tx.addItems(o.id, items)
	if kind == SecondThink {
		tx.add("SAVEPOINT before_the_last_item")
		tx.addItem(o.id, len(items)+1, item{product: pick(g.rng, g.products), quantity: 1})
		tx.add("ROLLBACK TO SAVEPOINT before_the_last_item")
	}
	return tx
}

func (g *Generator) abandon() Transaction {
	tx := Transaction{Kind: Abandon, Rollback: true}
	items, total := g.items()
	g.lastID++ // an id that no committed row has
	tx.addOrder(g, g.lastID, total)
	tx.addItems(g.lastID, items)
	return tx
}

func (g *Generator) advance() Transaction {
	i := g.rng.IntN(len(g.orders))
	o := &g.orders[i]
	o.status++
	tx := Transaction{Kind: Advance}
	tx.add("UPDATE shop.orders SET status = $2 WHERE id = $1", o.id, statuses[o.status])
	if o.status == len(statuses)-1 { // delivered: nothing changes any more
		g.orders = slices.Delete(g.orders, i, i+1)
	}
	return tx
}

func (g *Generator) renumber() Transaction {
	o := &g.orders[g.rng.IntN(len(g.orders))]
	before := o.id
	g.lastID++
	o.id = g.lastID
	tx := Transaction{Kind: Renumber}
	tx.add("UPDATE shop.orders SET id = $2 WHERE id = $1", before, o.id)
	return tx
}

func (g *Generator) cancel() Transaction {
	i := g.rng.IntN(len(g.orders))
	tx := Transaction{Kind: Cancel}
	tx.add("DELETE FROM shop.orders WHERE id = $1", g.orders[i].id)
	g.orders = slices.Delete(g.orders, i, i+1)
	return tx
}

func (g *Generator) campaign() Transaction {
	tx := Transaction{Kind: Campaign}
	tx.add(`UPDATE shop.customers SET profile = profile || jsonb_build_object('campaign', $1::text) WHERE id % 10 = $2`,
		g.words(1), g.rng.IntN(10))
	return tx
}

type item struct {
	product  product
	quantity int
}

// items draws what an order holds: different products, so that no row is
// locked twice, and what they cost together.
func (g *Generator) items() (items []item, cents int64) {
	first := g.rng.IntN(len(g.products))
	for i := range 1 + g.rng.IntN(5) {
		it := item{product: g.products[(first+i)%len(g.products)], quantity: 1 + g.rng.IntN(9)}
		items = append(items, it)
		cents += int64(it.quantity) * it.product.cents
	}
	return items, cents
}

func (t *Transaction) add(sql string, args ...any) {
	t.Statements = append(t.Statements, Statement{SQL: sql, Args: args})
}

func (t *Transaction) addOrder(g *Generator, id, cents int64) {
	var note any
	if g.rng.IntN(3) == 0 {
		note = g.words(4)
	}
	t.add("INSERT INTO shop.orders (id, customer_id, status, total, placed_at, note) VALUES ($1, $2, $3, $4, $5, $6)",
		id, pick(g.rng, g.customers), statuses[0], money(cents), g.now, note)
}

func (t *Transaction) addItems(orderID int64, items []item) {
	for i, it := range items {
		t.addItem(orderID, i+1, it)
		t.add("UPDATE shop.products SET stock = stock - $2 WHERE sku = $1", it.product.sku, it.quantity)
	}
}

func (t *Transaction) addItem(orderID int64, line int, it item) {
	t.add("INSERT INTO shop.order_items (order_id, line, sku, quantity, price) VALUES ($1, $2, $3, $4, $5)",
		orderID, line, it.product.sku, it.quantity, money(it.product.cents))
}

// money writes cents as a numeric with two digits.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// vocabulary has what encoders get wrong: accents, quotes, other scripts, an
// emoji beyond the basic plane, separators of CSV and JSON.
var vocabulary = []string{
	"tree", "blue", "Köln", "œuvre", "it's", `"quoted"`, "a,b", "日本", "🙂", "back\\slash", "tab\tbed", "line\nbreak", "null", "",
}

func (g *Generator) words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = pick(g.rng, vocabulary)
	}
	return strings.Join(words, " ")
}

func (g *Generator) name() string {
	return pick(g.rng, []string{"Ada", "Grace", "Edsger", "Barbara", "Zoë"}) + " " +
		pick(g.rng, []string{"Liu", "O'Neil", "Müller", "Okafor", "Sato"})
}

func (g *Generator) tags() []string {
	if g.rng.IntN(4) == 0 {
		return nil
	}
	tags := make([]string, g.rng.IntN(4))
	for i := range tags {
		tags[i] = pick(g.rng, vocabulary)
	}
	return tags
}

func (g *Generator) profileJSON() string {
	return fmt.Sprintf(`{"level": %d, "newsletter": %t, "score": %.3f, "city": %q}`,
		g.rng.IntN(10), g.rng.IntN(2) == 0, g.rng.Float64(), pick(g.rng, []string{"Köln", "東京", "Lagos"}))
}

func (g *Generator) uuid() string {
	hi, lo := g.rng.Uint64(), g.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff)
}

func (g *Generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rng.Uint32())
	}
	return b
}

// text draws n letters that do not compress much.
func (g *Generator) text(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz      ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.rng.IntN(len(letters))]
	}
	return string(b)
}
