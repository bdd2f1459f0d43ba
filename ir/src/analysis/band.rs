//! Perfectly nested loops, and their distribution over statements.

use crate::{Extent, Index, Loop, LoopKind, LoopVar, Stmt};

/// A band: a perfect nest of parallel loops of constant extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    /// The variables and extents, outermost first.
    pub loops: Vec<(LoopVar, u64)>,
}

/// The side of a band on which a statement is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// Outside, once for all iterations.
    Outside(Stmt),
    /// Inside, once an iteration.
    Inside(Stmt),
}

impl Band {
    /// The band of a loop and the loops of the same kind of range perfectly nested in it, and the innermost body; none
    /// if the loop's extent is not constant.
    pub fn of(l: Loop) -> Option<(Band, Vec<Stmt>)> {
        let Extent::Const(extent) = l.extent else { return None };
        let over = l.var.over;
        let mut loops = vec![(l.var, extent)];
        let mut body = l.body;
        while let [Stmt::For(Loop { var, extent: Extent::Const(n), .. })] = &body[..]
            && var.over == over
        {
            loops.push((*var, *n));
            let Some(Stmt::For(inner)) = body.pop() else { unreachable!("just seen") };
            body = inner.body;
        }
        Some((Band { loops }, body))
    }

    /// The number of iterations of all loops together.
    pub fn count(&self) -> u64 {
        self.loops.iter().map(|&(_, extent)| extent).product()
    }

    /// The number of the iteration: from 0, in row-major order, each below [`count`](Band::count) once.
    pub fn position(&self) -> Index {
        self.loops.iter().fold(Index::default(), |at, &(var, extent)| at.times(extent as i64).plus(var, 1))
    }

    /// The statements with the loops around them.
    pub fn around(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let wrap = |body, &(var, n): &(LoopVar, u64)| vec![Stmt::For(Loop::new(var, n, LoopKind::Parallel, body))];
        self.loops.iter().rev().fold(body, wrap)
    }

    /// The statements with the loops distributed over them: around each longest run of statements that `side` puts
    /// inside. Statements that it puts outside stay between the runs.
    pub fn sink(&self, body: Vec<Stmt>, side: &mut impl FnMut(Stmt) -> Side) -> Vec<Stmt> {
        let mut out = vec![];
        let mut run = vec![];
        for stmt in body {
            match side(stmt) {
                Side::Inside(stmt) => run.push(stmt),
                Side::Outside(stmt) => {
                    self.close(&mut run, &mut out);
                    out.push(stmt);
                }
            }
        }
        self.close(&mut run, &mut out);
        out
    }

    fn close(&self, run: &mut Vec<Stmt>, out: &mut Vec<Stmt>) {
        if !run.is_empty() {
            out.extend(self.around(std::mem::take(run)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nest, Over};

    fn nest(body: &str) -> Nest {
        let text = format!("nest \"\" {{ in x0: f32[64] out x1: f32[64] {body} }}");
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn band(body: &str) -> (Band, Vec<Stmt>) {
        let Some(Stmt::For(l)) = nest(body).body.into_iter().next() else { panic!("a loop") };
        Band::of(l).expect("a constant extent")
    }

    #[test]
    fn a_band_holds_the_loops_over_the_same() {
        let text =
            "for i0 in 0..4 parallel { for i1 in 0..3 parallel { for l2 in 0..2 parallel { x1[l2] = x0[l2] } } }";
        let text = text.replace("x1[l2]", "x1[12*i0 + 4*i1 + l2]");
        let (band, body) = band(&text);
        assert_eq!(band.count(), 12);
        assert_eq!(band.loops.iter().map(|(var, _)| var.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(band.position().to_string(), "3*i0 + i1");
        assert_eq!(band.around(body), nest(&text).body);
    }

    #[test]
    fn loops_go_around_the_runs_that_are_inside() {
        let (band, _) = band("for i0 in 0..4 parallel { x1[i0] = x0[i0] }");
        let body = nest("x1[0] = x0[0] x1[1] = x0[1] acc a0: f32[1] = 0.0 x1[2] = x0[2]").body;
        let sunk = band.sink(body, &mut |stmt| match matches!(stmt, Stmt::Acc { .. }) {
            true => Side::Outside(stmt),
            false => Side::Inside(stmt),
        });
        let lens: Vec<usize> = sunk.iter().map(|s| s.body().len()).collect();
        assert_eq!(lens, [2, 0, 1]);
        assert!(sunk.iter().all(|s| matches!(s, Stmt::Acc { .. }) || s.bound_loop_var() == Some(band.loops[0].0)));
        assert_eq!(band.loops[0].0.over, Over::Output);
    }
}
