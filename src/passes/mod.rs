//! The passes, in the order they run.
//!
//! A pass is one function from nest to nest in one file, whose doc comment draws the rewrite. The schedule decides what
//! a pass does. A pass never fails: where it finds nothing to do, it returns the nest unchanged. It keeps the term of
//! every output. A pass calls no other pass; facts that passes ask for stand in modules of their own (`lanes`,
//! `limits`, `positions`, `runs`, `short`, `spreads`, `state`, `sums`, `vector_forms`, `visits`, `walks`).
//!
//! [`PASSES`](crate::passes::PASSES) gives the reason for the place of each pass and the shape of nest that it relies on.
//! [`ROLES`](crate::passes::ROLES) gives, for the loops over each quantity, the passes that make them and the passes that
//! ask for them.

#![warn(clippy::wildcard_enum_match_arm)]

mod align;
mod divide;
mod fold;
mod gather;
mod hoist;
mod interchange;
mod interleave;
mod jam;
mod join_blocks;
mod lanes;
mod legalize;
mod limits;
mod load_rows;
mod merge_loops;
mod narrow;
mod neighbours;
mod outline;
mod positions;
mod prefetch;
mod promote;
mod reorder;
mod rows;
mod runs;
mod share_folds;
mod short;
mod side_by_side;
mod spread;
mod spreads;
mod squares;
mod state;
mod store_columns;
mod store_rows;
mod stream;
mod sums;
mod tile;
mod transpose;
mod unroll;
#[allow(clippy::wildcard_enum_match_arm, reason = "its catch-all says that there is no such form")]
mod vector_forms;
mod vectorize;
mod visits;
mod walks;

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::{LoopKind, Nest, Over, Stmt};

/// A function from nest to nest, and its place in the pipeline.
#[derive(Debug)]
pub struct Pass {
    /// The name of the stage after the pass in a dump.
    pub name: &'static str,
    /// The work of the pass, in a few words.
    pub summary: &'static str,
    /// The reason for the place of the pass.
    pub because: &'static str,
    /// The shape of the nest that the pass relies on; a nest of another shape stays as it is.
    pub relies_on: &'static str,
    /// The nests that it runs on.
    pub runs_on: RunsOn,
    /// The function; it gets the vectors that the code is made of.
    pub run: fn(Nest, &Schedule, Vectors) -> Nest,
}

/// The nests that a pass runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// Nests of `lower`, whose loops the schedule decides.
    Lowered,
    /// These, and any nest that a caller gives, if it has neither tiles nor lanes: it keeps its loops.
    WithoutVectors,
    /// Any nest.
    Any,
}

/// Returns whether a nest says itself what its vectors are.
pub fn has_vectors(nest: &Nest) -> bool {
    let mut found = false;
    nest.visit(&mut |s| {
        found |= matches!(s, Stmt::Wide { .. }) || matches!(s, Stmt::For(l) if l.kind == LoopKind::Lanes);
    });
    found
}

/// Every pass, in order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "tile",
        summary: "split output dims and steps into tiles",
        because: "first: the schedule names loops of the naive nest, and all others move or join the loops made here",
        relies_on: "the loops of lower: one for each output dim, one over the steps of a block, parallel ones over blocks",
        runs_on: RunsOn::Lowered,
        run: tile::tile,
    },
    Pass {
        name: "reorder",
        summary: "move a tile's loops inside the reduction's",
        because: "after tile, which makes the loops; while merges and folds are statements, whose elements are counted anew",
        relies_on: "the loops of a tile directly inside one another; the two that tile makes of one over blocks walk as it did",
        runs_on: RunsOn::Lowered,
        run: reorder::reorder,
    },
    Pass {
        name: "interchange",
        summary: "move a tile's loops inside those over blocks",
        because: "after tile, and before stream, which makes a stack of all the states that lie side by side then",
        relies_on: "beside a merge in the tile, nothing before it but its accumulators and loops over blocks",
        runs_on: RunsOn::Lowered,
        run: interchange::interchange,
    },
    Pass {
        name: "side_by_side",
        summary: "put the lanes of neighbouring slices side by side",
        because: "after tile, which makes the loops; before merge_loops, which makes one loop of all those lanes",
        relies_on: "lanes inside steps, innermost; nothing in a tile but loops, elements, merges and folds",
        runs_on: RunsOn::Lowered,
        run: side_by_side::side_by_side,
    },
    Pass {
        name: "spread",
        summary: "spread values of slices over the rows that lanes walk",
        because: "after reorder, which brings a tile's loops inside those over lanes; before merge_loops, which makes one loop of both",
        relies_on: "loops over lanes, positions or outputs directly around one over outputs, with a straight body",
        runs_on: RunsOn::Lowered,
        run: spread::spread,
    },
    Pass {
        name: "merge_loops",
        summary: "join loops that walk memory as one",
        because: "after the passes that bring loops directly inside one another; before those that count a loop's iterations",
        relies_on: "parallel loops; those over blocks stay apart for stream, and tiles that share folds for share_folds",
        runs_on: RunsOn::Lowered,
        run: merge_loops::merge_loops,
    },
    Pass {
        name: "join_blocks",
        summary: "add integers of all blocks into one state",
        because: "before stream, which writes out the merges that are left; before neighbours, which asks for one sum",
        relies_on: "a merge beside the loops over its blocks, in which the accumulator is only added to",
        runs_on: RunsOn::Lowered,
        run: join_blocks::join_blocks,
    },
    Pass {
        name: "neighbours",
        summary: "add bytes that lie side by side in one lane",
        because: "before fold: while it is a statement, it says that all lanes end in one sum; after join_blocks, for no merge may be left",
        relies_on: "a loop over steps around one over lanes that adds one byte; codegen knows the sums by their order, from the left",
        runs_on: RunsOn::Lowered,
        run: neighbours::neighbours,
    },
    Pass {
        name: "stream",
        summary: "merge blocks as they are done",
        because: "after the passes that need a merge as a statement; before fold and hoist, which work on the loops it writes",
        relies_on: "merged accumulators declared beside their merge, and loops over blocks there, or over outputs around such",
        runs_on: RunsOn::Lowered,
        run: stream::stream,
    },
    Pass {
        name: "share_folds",
        summary: "fold the lanes of several outputs together",
        because: "before fold, which writes out the folds that no outputs share; after stream, which makes a state of one block",
        relies_on: "a fold of one element in the body of a tile, and after it only uses of its results",
        runs_on: RunsOn::Lowered,
        run: share_folds::share_folds,
    },
    Pass {
        name: "fold",
        summary: "write out the folds of lanes, and merges that are left",
        because: "after neighbours and share_folds, which ask for the statement; before the passes that know loops alone",
        relies_on: "no more than the meaning of a fold",
        runs_on: RunsOn::Any,
        run: fold::fold,
    },
    Pass {
        name: "narrow",
        summary: "add small integers in a narrower type, a block of steps at a time",
        because: "after neighbours, whose sums of bytes are narrower still, and reorder, which brings all loops of a tile inside a step; before jam, while a step adds one element",
        relies_on: "loops over steps of constant extent, in which one statement adds to an accumulator",
        runs_on: RunsOn::Lowered,
        run: narrow::narrow,
    },
    Pass {
        name: "jam",
        summary: "take several steps in one visit of an accumulator",
        because: "after merge_loops and reorder, which bring the body of a step to its last shape; before hoist, for it reads once what steps share",
        relies_on: "loops over jammed steps, which tile makes, of constant extent and with a straight body",
        runs_on: RunsOn::Lowered,
        run: jam::jam,
    },
    Pass {
        name: "hoist",
        summary: "read what a loop does not change before it",
        because: "after jam and fold, whose reads it moves; before interleave and unroll, which would make copies of them",
        relies_on: "no more than the indices and the accumulators that a loop changes",
        runs_on: RunsOn::WithoutVectors,
        run: hoist::hoist,
    },
    Pass {
        name: "interleave",
        summary: "take several blocks or outputs at once",
        because: "after stream, whose sequential loops over blocks it joins; before vectorize, while a loop is still one statement",
        relies_on: "loops over blocks or outputs directly around loops over steps; a carry made of blocks alone",
        runs_on: RunsOn::Lowered,
        run: interleave::interleave,
    },
    Pass {
        name: "gather",
        summary: "bring elements into order a stretch of a slice at a time",
        because: "after stream and interleave, whose loops read the stretches; before squares, which walks each of them",
        relies_on: "parallel loops over positions that copy elements of inputs in row-major order, beside the loops that read them",
        runs_on: RunsOn::Lowered,
        run: gather::gather,
    },
    Pass {
        name: "squares",
        summary: "walk matrices that lie across memory by squares",
        because: "before outline and vectorize, which make lanes of the loops inside squares",
        relies_on: "parallel loops over positions that copy elements of inputs, or over outputs that are computed of inputs alone, one directly inside the other but for values of the outer one",
        runs_on: RunsOn::Lowered,
        run: squares::squares,
    },
    Pass {
        name: "outline",
        summary: "give statements to the generator of wide vectors",
        because: "after the passes that move statements over others; before vectorize, which makes the vectors of a wide function wider",
        relies_on: "lanes::lanes, by which vectorize decides",
        runs_on: RunsOn::WithoutVectors,
        run: outline::outline,
    },
    Pass {
        name: "rows",
        summary: "take several rows of outputs as one",
        because: "after outline, for wide vectors alone load such rows; before vectorize, which makes lanes of their loop",
        relies_on: "the loop of a tile directly around another over outputs, with a straight body",
        runs_on: RunsOn::Lowered,
        run: rows::rows,
    },
    Pass {
        name: "vectorize",
        summary: "make lanes of parallel loops",
        because: "after outline, which says where vectors may be wide; before unroll, which counts vectors and not elements",
        relies_on: "parallel loops with straight bodies, which walk accumulators one element at a time",
        runs_on: RunsOn::WithoutVectors,
        run: vectorize::vectorize,
    },
    Pass {
        name: "divide",
        summary: "divide by what a loop does not change through its reciprocal",
        because: "after hoist, which binds divisors before loops, and vectorize, which gives one of several slices to each lane; before unroll, which makes copies of divisions",
        relies_on: "values bound before loops that divide by them, and elements that such loops do not change, in wide functions",
        runs_on: RunsOn::WithoutVectors,
        run: divide::divide,
    },
    Pass {
        name: "unroll",
        summary: "write out short loops",
        because: "after vectorize, whose groups of short::GROUP vectors it writes out; before legalize: it counts vectors before they are split",
        relies_on: "loops over lanes inside those it writes out; transpose loads lanes that lie apart where short::SHORT stand together",
        runs_on: RunsOn::WithoutVectors,
        run: unroll::unroll,
    },
    Pass {
        name: "legalize",
        summary: "split vectors and replace what the target lacks",
        because: "after all that make operations and vectors: none after it makes one that the target lacks",
        relies_on: "no more than vector_forms, which says what vectors can do",
        runs_on: RunsOn::Any,
        run: legalize::legalize,
    },
    Pass {
        name: "load_rows",
        summary: "load the rows of accumulators together",
        because: "after legalize, whose vectors are as long as those that are loaded; after unroll, which brings the steps of a slice into one body; before transpose, which takes what is left row by row",
        relies_on: "accumulators that loads in the lanes of one body fill",
        runs_on: RunsOn::Any,
        run: load_rows::load_rows,
    },
    Pass {
        name: "store_rows",
        summary: "store the rows of accumulators together",
        because: "after legalize and unroll, as load_rows is, which loads such rows; before store_columns, which takes what is left row by row",
        relies_on: "accumulators that stores in the lanes of one body empty",
        runs_on: RunsOn::Any,
        run: store_rows::store_rows,
    },
    Pass {
        name: "transpose",
        summary: "load columns of matrices together",
        because: "after legalize, whose vectors are as long as those that are loaded; after unroll, which brings neighbours into one body; before align, for what is transposed is loaded by whole lines anyway",
        relies_on: "loads in the lanes of one body that differ by constants",
        runs_on: RunsOn::Any,
        run: transpose::transpose,
    },
    Pass {
        name: "store_columns",
        summary: "store columns of matrices together",
        because: "after legalize, whose vectors are as long as those that are stored; after unroll, which brings neighbours into one body; beside transpose, which loads such columns",
        relies_on: "stores in the lanes of one body that differ by constants",
        runs_on: RunsOn::Any,
        run: store_columns::store_columns,
    },
    Pass {
        name: "align",
        summary: "load whole lines of memory, wherever an input begins",
        because: "after legalize, whose vectors are those of the target; before prefetch, for it asks for bodies of vectors alone",
        relies_on: "loops over steps that load vectors one behind the other, and accumulators declared beside them",
        runs_on: RunsOn::Lowered,
        run: align::align,
    },
    Pass {
        name: "promote",
        summary: "keep elements of accumulators in registers while a loop adds to them",
        because: "after legalize, whose vectors they are, and align, which asks for accumulators beside their loop",
        relies_on: "loops over steps around loops over lanes, and accumulators that loops outside of these walk",
        runs_on: RunsOn::Lowered,
        run: promote::promote,
    },
    Pass {
        name: "prefetch",
        summary: "ask for memory ahead of the vectors that are loaded",
        because: "after legalize, which splits vectors, and align, which moves them: each asks for its own line",
        relies_on: "loops over lanes inside those over steps or positions, in wide functions",
        runs_on: RunsOn::Any,
        run: prefetch::prefetch,
    },
];

/// The role of the loops over one quantity: the protocol between passes.
#[derive(Debug)]
pub struct Role {
    /// The quantity.
    pub over: Over,
    /// The meaning of the role, in a few words.
    pub means: &'static str,
    /// The passes that make such loops of other loops or of statements; `lower` where the naive nest has them. A pass
    /// that splits a loop gives both parts the role of the whole.
    pub made_by: &'static [&'static str],
    /// The passes that ask for the role; `codegen` where the generators do.
    pub asked_by: &'static [&'static str],
}

/// Every role.
pub const ROLES: &[Role] = &[
    Role {
        over: Over::Output,
        means: "an output dim; the schedule names tiles by such loops",
        made_by: &["lower", "spread", "squares"],
        asked_by: &["fold", "interchange", "interleave", "rows", "spread", "squares", "stream", "unroll", "vectorize"],
    },
    Role {
        over: Over::Block,
        means: "blocks of the reduction tree: parallel until stream or join_blocks puts them in order",
        made_by: &["fold", "lower"],
        asked_by: &[
            "interchange",
            "interleave",
            "join_blocks",
            "merge_loops",
            "reorder",
            "side_by_side",
            "stream",
            "tile",
            "unroll",
        ],
    },
    Role {
        over: Over::Step,
        means: "steps of a block, in order; a loop around one runs often",
        made_by: &["lower", "narrow"],
        asked_by: &[
            "align",
            "interleave",
            "join_blocks",
            "narrow",
            "neighbours",
            "prefetch",
            "promote",
            "reorder",
            "side_by_side",
            "spread",
            "tile",
            "unroll",
            "vectorize",
        ],
    },
    Role {
        over: Over::Jam,
        means: "steps taken in one visit of an accumulator, all to be written out",
        made_by: &["tile"],
        asked_by: &["jam", "reorder", "side_by_side", "tile", "unroll"],
    },
    Role {
        over: Over::Lane,
        means: "lanes of a step, which a fold combines",
        made_by: &["lower"],
        asked_by: &["neighbours", "side_by_side", "spread", "stream", "tile", "unroll"],
    },
    Role {
        over: Over::Element,
        means: "elements of states; such a loop runs seldom unless one over steps touches its accumulators",
        made_by: &[
            "divide",
            "fold",
            "interchange",
            "legalize",
            "lower",
            "narrow",
            "outline",
            "promote",
            "share_folds",
            "side_by_side",
            "stream",
        ],
        asked_by: &["unroll", "vectorize"],
    },
    Role {
        over: Over::Level,
        means: "levels of the stack of block states; a carry binds how many there are",
        made_by: &["stream"],
        asked_by: &[],
    },
    Role {
        over: Over::Position,
        means: "positions of a slice, each of which has its own outputs",
        made_by: &["lower", "spread", "squares"],
        asked_by: &["codegen", "gather", "interleave", "prefetch", "spread", "squares", "unroll", "vectorize"],
    },
    Role {
        over: Over::Start,
        means: "no loop: a pick binds where a window starts, and a misalign where in its line an element lies",
        made_by: &["align", "lower"],
        asked_by: &[],
    },
];
