//go:build !race

package iceberg

const raced = false
