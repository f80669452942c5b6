package config

import "strings"

// Nearest returns the word that a writer of s most likely meant, or "" when none is near: at most one edit for each
// three letters. An exchange of two neighbours counts as one edit, letter case as none.
func Nearest(s string, words []string) string {
	best, distance := "", len(s)/3+1
	if len(s) < 2 {
		return ""
	}
	for _, w := range words {
		if d := edits(strings.ToLower(s), strings.ToLower(w)); d <= distance && (best == "" || d < distance) {
			best, distance = w, d
		}
	}
	return best
}

// edits is the optimal string alignment distance.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
