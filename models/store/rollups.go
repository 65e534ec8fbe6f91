package store

import (
	"fmt"
	"strings"

	"gorm.io/gorm/clause"

	"berth/models"
)

// rollupBatch is how many rollups one statement writes: SQLite's driver looks
// through all parameters of a statement for each.
const rollupBatch = 50

// PutRollups writes rollups. Of one step and subject the one with more samples
// stays, so that the same again changes nothing, and what a restarted portal saw
// of the rest of a minute does not take the place of more.
func (tx *Tx) PutRollups(list []models.Rollup) error {
	if len(list) == 0 {
		return nil
	}
	return tx.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "step"}, {Name: "at"}, {Name: "subject"}},
		Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "excluded.samples > rollups.samples"}}},
		UpdateAll: true,
	}).CreateInBatches(list, rollupBatch).Error
}

// figureColumns are all columns of a rollup that have figures, and how several of
// them become one.
func figureColumns() (columns, sums []string) {
	columns, sums = []string{"samples"}, []string{"CAST(SUM(samples) AS bigint) AS samples"}
	for _, kind := range []string{"utilization", "memory", "temperature", "power"} {
		for _, part := range []struct{ name, how string }{{"count", "SUM"}, {"min", "MIN"}, {"max", "MAX"}, {"sum", "SUM"}} {
			column := kind + "_" + part.name
			columns = append(columns, column)
			sums = append(sums, fmt.Sprintf("CAST(%s(%s) AS bigint) AS %s", part.how, column, column))
		}
	}
	return columns, sums
}

// GatherRollups makes the rollups of a longer step, in the half-open interval from
// from to to, out of those of a shorter. It may be done again: what it made
// before gives way, unless there are fewer samples now than there were.
func (tx *Tx) GatherRollups(step, out models.Seconds, from, to models.Instant) error {
	columns, sums := figureColumns()
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = excluded." + c
	}
	us := out.Duration().Microseconds()
	return tx.db.Exec(fmt.Sprintf(`INSERT INTO rollups (step, at, subject, %s)
		SELECT %d, at - at %% %d, subject, %s FROM rollups WHERE step = ? AND at >= ? AND at < ? GROUP BY 2, 3
		ON CONFLICT (step, at, subject) DO UPDATE SET %s WHERE excluded.samples >= rollups.samples`,
		strings.Join(columns, ", "), out, us, strings.Join(sums, ", "), strings.Join(sets, ", ")), step, from, to).Error
}

// NewestRollup returns the begin of the newest rollup of a step, zero without any.
func (tx *Tx) NewestRollup(step models.Seconds) (at models.Instant, err error) {
	return at, tx.db.Model(&models.Rollup{}).Select("COALESCE(MAX(at), 0)").Where("step = ?", step).Scan(&at).Error
}

// Rollups reads a subject's rollups of a step that begin in the half-open interval
// from from to to, merged into those of a step that is as long or longer, oldest
// first. From must be the begin of a step. It looks each time up by itself, since the
// table is ordered by time before subject.
func (tx *Tx) Rollups(step, out models.Seconds, subject string, from, to models.Instant) (list []models.Rollup, err error) {
	if from >= to {
		return nil, nil
	}
	_, sums := figureColumns()
	us := step.Duration().Microseconds()
	return list, tx.db.Raw(fmt.Sprintf(`WITH RECURSIVE times("time") AS (SELECT CAST(? AS bigint) UNION ALL SELECT "time" + %d FROM times WHERE "time" + %d < ?)
		SELECT %d AS step, r.at - r.at %% %d AS at, r.subject, %s FROM times CROSS JOIN rollups r WHERE r.step = ? AND r.at = times."time" AND r.subject = ?
		GROUP BY 2, 3 ORDER BY 2`, us, us, out, out.Duration().Microseconds(), strings.Join(sums, ", ")), from, to, step, subject).Scan(&list).Error
}

// DropRollups deletes at most so many rollups of a step that begin before a moment,
// the oldest first, and returns how many.
func (tx *Tx) DropRollups(step models.Seconds, before models.Instant, limit int) (int64, error) {
	res := tx.db.Exec(`DELETE FROM rollups WHERE (step, at, subject) IN
		(SELECT step, at, subject FROM rollups WHERE step = ? AND at < ? ORDER BY at LIMIT ?)`, step, before, limit)
	return res.RowsAffected, res.Error
}
