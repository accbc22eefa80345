//! Distribution of lines among parts.

use unicode_segmentation::GraphemeCursor;

use super::cost::{Cost, Form};
use super::fence::{fence_cost, separator_cost};
use super::piece::{Piece, Slice};
use super::row::{Layout, Row};
use super::tree::Run;
use crate::platform::floor_boundary;

/// Distributes lines among at most `count` parts.
pub(super) fn pack<'a>(layout: &'a Layout, form: Form, count: usize) -> Vec<Vec<Piece<'a>>> {
    let mut packer = Packer {
        layout,
        form,
        count,
        parts: Vec::new(),
        current: Vec::new(),
        used: Cost::default(),
        is_fresh: true,
    };
    let costs: Vec<Cost> = layout.rows.iter().map(|row| row.cost(form)).collect();
    for (index, row) in layout.rows.iter().enumerate() {
        if packer.parts.len() >= count {
            break;
        }
        let previous = index.checked_sub(1).map(|before| &layout.rows[before]);
        let begins_group = previous.is_none_or(|previous| previous.group != row.group);
        if begins_group && !packer.current.is_empty() {
            let group = group_cost(layout, &costs, index, form);
            if !(packer.used + group).fits(form.max) && group.fits(form.max) {
                packer.flush();
            }
        }
        packer.place(row, costs[index]);
    }
    packer.flush();
    packer.parts.truncate(count);
    packer.parts
}

/// Returns the cost of the block that begins at a line, behind other blocks.
fn group_cost(layout: &Layout, costs: &[Cost], first: usize, form: Form) -> Cost {
    let mut sum = Cost::default();
    let mut fence = None;
    let group = layout.rows[first].group;
    let rows = layout.rows[first..].iter().zip(&costs[first..]);
    for (row, cost) in rows.take_while(|(row, _)| row.group == group) {
        sum += separator_cost(row.gap, form) + *cost;
        if row.fence != fence {
            sum += fence_cost(row, &layout.fences, form);
        }
        fence = row.fence;
    }
    sum
}

#[derive(Debug)]
struct Packer<'a> {
    layout: &'a Layout,
    form: Form,
    count: usize,
    parts: Vec<Vec<Piece<'a>>>,
    current: Vec<Piece<'a>>,
    used: Cost,
    /// `true` while the current part has nothing but the repeated head of a table.
    is_fresh: bool,
}

impl<'a> Packer<'a> {
    /// Ends the current part.
    fn flush(&mut self) {
        let pieces = std::mem::take(&mut self.current);
        if !self.is_fresh {
            self.parts.push(pieces);
        }
        self.used = Cost::default();
        self.is_fresh = true;
    }

    /// Ends the current part and begins the next one with the head of a line's table.
    fn flush_before(&mut self, row: &Row) {
        self.flush();
        let layout = self.layout;
        let head = row.table.and_then(|table| layout.heads.get(table)).cloned();
        for row in layout.rows[head.unwrap_or_default()].iter() {
            self.push(row, true, whole(row), row.cost(self.form));
        }
        self.is_fresh = true;
    }

    /// Returns the cost of what precedes a line in the current part.
    fn entry(&self, row: &Row) -> Cost {
        let previous = self.current.last();
        let mut cost = Cost::default();
        if previous.is_some() {
            cost += separator_cost(row.gap, self.form);
        }
        if previous.and_then(|piece| piece.row.fence) != row.fence {
            cost += fence_cost(row, &self.layout.fences, self.form);
        }
        cost
    }

    fn push(&mut self, row: &'a Row, is_first: bool, slices: Vec<Slice<'a>>, cost: Cost) {
        self.used += self.entry(row) + cost;
        self.current.push(Piece {
            row,
            is_first,
            slices,
        });
        self.is_fresh = false;
    }

    fn place(&mut self, row: &'a Row, cost: Cost) {
        let max = self.form.max;
        let fits = |packer: &Self| (packer.used + packer.entry(row) + cost).fits(max);
        if fits(self) {
            self.push(row, true, whole(row), cost);
            return;
        }
        let alone = fence_cost(row, &self.layout.fences, self.form) + cost;
        if !self.is_fresh && (alone.fits(max) || self.used.greatest() > max - max / 4) {
            self.flush_before(row);
            if fits(self) {
                self.push(row, true, whole(row), cost);
                return;
            }
        }
        self.split(row);
    }

    /// Distributes a line that is longer than a part.
    fn split(&mut self, row: &'a Row) {
        let mut from = Position::default();
        let mut is_first = true;
        while self.parts.len() < self.count {
            let overhead = row.overhead(is_first, self.form);
            let taken = self.used + self.entry(row) + overhead;
            let budget = Cost {
                markup: self.form.max.saturating_sub(taken.markup),
                plain: self.form.max.saturating_sub(taken.plain),
            };
            let cut = cut(row, from, budget, self.is_fresh, self.form);
            if cut.to == from && from.run < row.runs.len() {
                // Nothing fits behind the text of the part.
                self.flush_before(row);
                continue;
            }
            let slices = between(row, from, cut.to);
            self.push(row, is_first, slices, overhead + cut.cost);
            if cut.to.run >= row.runs.len() {
                return;
            }
            from = cut.to;
            is_first = false;
            self.flush_before(row);
        }
    }
}

/// Position in the text of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Position {
    run: usize,
    offset: usize,
}

/// Section of a line that fits.
#[derive(Debug, Clone, Copy)]
struct Cut {
    to: Position,
    cost: Cost,
}

fn slice<'a>(run: &'a Run, from: usize, to: usize) -> Slice<'a> {
    Slice {
        text: &run.text[from..to],
        style: run.style,
        link: run.link.as_deref(),
    }
}

fn whole(row: &Row) -> Vec<Slice<'_>> {
    row.runs
        .iter()
        .map(|run| slice(run, 0, run.text.len()))
        .collect()
}

fn between(row: &Row, from: Position, to: Position) -> Vec<Slice<'_>> {
    let last = to.run.min(row.runs.len().saturating_sub(1));
    (from.run..=last)
        .filter_map(|index| {
            let run = row.runs.get(index)?;
            let start = if index == from.run { from.offset } else { 0 };
            let end = if index == to.run {
                to.offset
            } else {
                run.text.len()
            };
            (start < end).then(|| slice(run, start, end))
        })
        .collect()
}

/// Finds the longest section from a position that fits a budget: up to white space, or else up to a
/// grapheme cluster. Returns at least one character if `must` is `true`.
fn cut(row: &Row, from: Position, budget: Cost, must: bool, form: Form) -> Cut {
    let fits = |cost: Cost| cost.markup <= budget.markup && cost.plain <= budget.plain;
    let mut used = Cost::default();
    let mut space: Option<Cut> = None;
    for (index, run) in row.runs.iter().enumerate().skip(from.run) {
        let start = if index == from.run { from.offset } else { 0 };
        let at_start = Position {
            run: index,
            offset: start,
        };
        let before = Cut {
            to: at_start,
            cost: used,
        };
        if run.link.is_some() {
            let cost = used + row.run_cost(run, form);
            if !fits(cost) && (index > from.run || !must) {
                return before;
            }
            used = cost;
            space = Some(Cut {
                to: next(row, index),
                cost,
            });
            continue;
        }
        let context = row.context(run.style);
        let mut sum = used + row.run_overhead(run, form);
        let mut end = start;
        for character in run.text[start..].chars() {
            let longer = sum + form.character(character, context);
            if !fits(longer) {
                let best = space
                    .filter(|cut| !must || cut.cost.greatest().saturating_mul(2) >= sum.greatest());
                return best.unwrap_or_else(|| inside(run, before, end, sum, must));
            }
            sum = longer;
            end += character.len_utf8();
            if character.is_whitespace() {
                space = Some(Cut {
                    to: Position {
                        run: index,
                        offset: end,
                    },
                    cost: sum,
                });
            }
        }
        used = sum;
    }
    Cut {
        to: next(row, row.runs.len()),
        cost: used,
    }
}

/// Returns the position behind a run.
fn next(row: &Row, index: usize) -> Position {
    Position {
        run: (index + 1).min(row.runs.len()),
        offset: 0,
    }
}

/// Cuts within a run, at most at `end`. The text up to there costs at most `cost`.
fn inside(run: &Run, before: Cut, end: usize, cost: Cost, must: bool) -> Cut {
    let Position { run: index, offset } = before.to;
    if !must {
        return before;
    }
    let at = |offset| Cut {
        to: Position { run: index, offset },
        cost,
    };
    let rest = &run.text[offset..];
    // Enough to recognize the cluster around the cut.
    let window = &rest[..floor_boundary(rest, (end - offset).saturating_add(64))];
    let mut cursor = GraphemeCursor::new(end - offset, window.len(), true);
    let is_boundary = cursor.is_boundary(window, 0).unwrap_or(true);
    let boundary = if is_boundary {
        Some(end - offset)
    } else {
        cursor.prev_boundary(window, 0).ok().flatten()
    };
    match boundary {
        Some(length) if length > 0 => at(offset + length),
        _ if before.cost != Cost::default() => before,
        _ if end > offset => at(end),
        _ => at(offset + rest.chars().next().map_or(0, char::len_utf8)),
    }
}
