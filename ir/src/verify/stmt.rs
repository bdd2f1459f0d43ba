//! The rules of statements.

use super::bounds::Term;
use super::conflict::{Access, Target};
use super::{AccInfo, Site, Verifier};
use crate::{
    AccId, BufId, Buffer, BufferRole, DType, DefId, Expr, Extent, Index, Loop, LoopKind, LoopVar, MAX_DEPTH,
    MAX_NUMBER, Scalar, Selection, Stmt, Transpose, Var,
};
use std::fmt::Display;

/// The most lanes of a line of memory, and of a transpose: one byte each.
const MAX_LANES: u64 = 64;

/// The names that a body has bound so far, forgotten at its end.
#[derive(Default)]
struct Body {
    vars: Vec<Var>,
    accs: Vec<AccId>,
}

impl<'a> Verifier<'a> {
    /// Checks the statements of a nest.
    pub(super) fn body(&mut self, stmts: &'a [Stmt]) {
        self.body_in(stmts, &mut Vec::new());
    }

    /// Checks the statements of a body; `around` are the open loops.
    fn body_in(&mut self, stmts: &'a [Stmt], around: &mut Vec<&'a Loop>) {
        let mark = self.bindings.mark();
        let mut body = Body::default();
        for stmt in stmts {
            self.place = Site::Stmt(stmt);
            let in_lanes = around.last().is_some_and(|l| l.kind == LoopKind::Lanes);
            let simple = matches!(stmt, Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. });
            let is_alone = stmts.len() == 1 && matches!(stmt, Stmt::For(l) if l.kind == LoopKind::Lanes);
            let outermost = !around.iter().rev().skip(1).any(|l| l.kind == LoopKind::Lanes);
            if in_lanes && !simple && !(is_alone && outermost) {
                self.report("a lanes loop holds only let, call, sets and stores, or one lanes loop of such");
            }
            if self.in_wide && matches!(stmt, Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. }) {
                self.report("nothing in a wide function merges, folds or selects");
            }
            stmt.exprs().iter().for_each(|e| self.expr(e));
            match stmt {
                Stmt::For(l) => self.for_stmt(l, around),
                Stmt::Acc { acc, dtype, len, init } => self.acc(&mut body, *acc, *dtype, *len, *init),
                Stmt::Let { var, value } => self.bind(&mut body, *var, value.dtype()),
                Stmt::Call { vars, def, args } => self.call_stmt(&mut body, vars, *def, args),
                Stmt::Set { acc, index, value } => self.set(*acc, index, value),
                Stmt::Store { buf, index, value } => self.store(buf.0, index, value),
                Stmt::Carry { var, of } => self.carry(*var, of),
                Stmt::Pick { var, value, most } => {
                    self.new_loop_var(*var);
                    if !value.dtype().is_int() || i64::try_from(*most).is_err() {
                        self.report("what is picked is an integer, and at most 2^63 - 1");
                    }
                    self.bindings.pick(*var, *most);
                }
                Stmt::Misalign { var, buf, index, lanes } => {
                    self.new_loop_var(*var);
                    if !lanes.is_power_of_two() || *lanes > MAX_LANES {
                        self.report(format!("a line of {lanes} lanes is no power of two up to {MAX_LANES}"));
                    }
                    if let Some(buffer) = self.buffer(*buf) {
                        self.within(index, buffer.len, buf);
                    }
                    self.bindings.misalign(*var, *lanes);
                }
                Stmt::Rotate { acc, start, len, by } => self.rotate(*acc, (*start, *len), *by, around),
                Stmt::Prefetch { buf, index, far: _ } => {
                    self.buffer(*buf);
                    if self.index(index) && !self.bindings.never_runs() && self.bindings.bounds(index).is_none() {
                        self.report(format!("index {index} may overflow"));
                    }
                }
                Stmt::Merge { accs, def, blocks, elems } => {
                    if *blocks == 0 {
                        self.report("there is no block to merge");
                    }
                    self.combine(accs, *def, *blocks, *elems, around);
                }
                Stmt::Fold { accs, def, present, lanes, elems } => {
                    if !lanes.is_power_of_two() {
                        self.report(format!("the number of lanes, {lanes}, is no power of two"));
                    }
                    if *present == 0 || present > lanes {
                        self.report(format!("{present} of {lanes} lanes cannot be present"));
                    }
                    self.combine(accs, *def, *present, *elems, around);
                }
                Stmt::Select { vars, what, acc, len } => self.select(&mut body, vars, what, *acc, *len),
                Stmt::Transpose(t) => self.transpose(&body, t),
                Stmt::TransposedStore(t) => self.transposed_store(&body, t),
                Stmt::Wide { body } => self.wide(body, around),
            }
        }
        for var in &body.vars {
            self.vars.remove(var);
        }
        for acc in &body.accs {
            self.accs.remove(acc);
        }
        self.bindings.leave(mark);
    }

    fn wide(&mut self, body: &'a [Stmt], around: &mut Vec<&'a Loop>) {
        if self.in_wide {
            return self.report("a wide function stands in a wide function");
        }
        if self.is_too_deep(around) {
            return;
        }
        let place = self.place;
        self.in_wide = true;
        self.body_in(body, around);
        self.in_wide = false;
        self.place = place;
    }

    /// Returns true, and reports it, if another loop or wide function would exceed [`MAX_DEPTH`].
    fn is_too_deep(&mut self, around: &[&Loop]) -> bool {
        let too_deep = around.len() + usize::from(self.in_wide) == MAX_DEPTH;
        if too_deep {
            self.report(format!("loops nest more than {MAX_DEPTH} deep"));
        }
        too_deep
    }

    fn for_stmt(&mut self, l: &'a Loop, around: &mut Vec<&'a Loop>) {
        let place = self.place;
        if self.is_too_deep(around) {
            return;
        }
        self.new_loop_var(l.var);
        match l.extent {
            Extent::Carry(q) if !self.bindings.is_carry(q) => {
                self.report(format!("the extent {q} is not bound by carry here"));
            }
            Extent::From(s, lanes) | Extent::Below(s, lanes) if !self.bindings.is_in_line(s, lanes) => {
                self.report(format!("the extent {s} is not bound by misalign in {lanes} here"));
            }
            Extent::Const(_) | Extent::Carry(_) | Extent::From(..) | Extent::Below(..) => {}
        }
        let is_edge = matches!(l.extent, Extent::From(..) | Extent::Below(..));
        match l.kind {
            LoopKind::Lanes if !is_edge && !matches!(l.extent, Extent::Const(1..)) => {
                self.report("a lanes loop has a constant extent of at least 1");
            }
            LoopKind::Lanes if is_edge && matches!(l.body[..], [Stmt::For(_)]) => {
                self.report("a lanes loop that leaves lanes out is around no other");
            }
            LoopKind::Parallel | LoopKind::Seq if is_edge => self.report("only a lanes loop leaves lanes out"),
            LoopKind::Parallel | LoopKind::Seq | LoopKind::Lanes => {}
        }
        let extent = self.bindings.most_iterations(l.extent);
        let first = self.accesses.len();
        let mark = self.bindings.enter(l.var, l.extent);
        around.push(l);
        self.body_in(&l.body, around);
        around.pop();
        self.bindings.leave(mark);
        if l.kind != LoopKind::Seq && extent > 1 {
            self.conflicts(first, l.var, extent, self.bindings.loops());
        }
        if around.is_empty() {
            self.accesses.clear();
        }
        self.place = place;
    }

    fn new_loop_var(&mut self, var: LoopVar) {
        self.number(var, var.id);
        if self.bindings.is_bound(var) {
            self.report(format!("{var} is bound already"));
        }
    }

    /// A buffer; reports one that is not there.
    fn buffer(&mut self, buf: BufId) -> Option<&'a Buffer> {
        let buffer = self.nest.buffers.get(buf.0 as usize);
        if buffer.is_none() {
            self.report(format!("there is no buffer {buf}"));
        }
        buffer
    }

    fn rotate(&mut self, acc: AccId, (start, len): (u64, u64), by: LoopVar, around: &[&Loop]) {
        if len == 0 {
            self.report("there is no element to rotate");
        }
        if self.index(&Index::term(by, 1)) && !self.bindings.is_place(by) {
            self.report(format!("{by} is not bound by misalign here"));
        }
        let Some(info) = self.unselected(acc) else { return };
        if u128::from(start) + u128::from(len) > u128::from(info.len) {
            self.report(format!("{acc} has {} elements, and {len} from {start} on are rotated", info.len));
        }
        self.alone(acc, info.depth, around);
    }

    fn carry(&mut self, var: LoopVar, of: &Index) {
        self.new_loop_var(var);
        let mut most = i128::from(i64::MAX);
        if self.index(of) && !self.bindings.never_runs() {
            match self.bindings.bounds(of) {
                Some((least, greatest)) => {
                    if least < 0 {
                        self.report(format!("index {of} may be {least}, and carry takes none below 0"));
                    }
                    most = greatest;
                }
                None => self.report(format!("index {of} may overflow")),
            }
        }
        self.bindings.carry(var, most);
    }

    /// Checks that a name's number is at most [`MAX_NUMBER`].
    fn number(&mut self, name: impl Display, number: u32) {
        if number > MAX_NUMBER {
            self.report(format!("{name} is numbered above {MAX_NUMBER}"));
        }
    }

    fn bind(&mut self, body: &mut Body, var: Var, dtype: DType) {
        self.number(var, var.0);
        if !self.bound.insert(var) {
            self.report(format!("{var} is bound a second time"));
        }
        if self.vars.insert(var, dtype).is_none() {
            body.vars.push(var);
        }
    }

    fn acc(&mut self, body: &mut Body, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        if dtype == DType::Bool {
            self.report("an accumulator is not of type bool, which is u8 in memory");
        }
        self.number(acc, acc.0);
        if init.dtype() != dtype {
            self.report(format!("the initial value is {}, not {dtype}", init.dtype()));
        }
        if !self.declared.insert(acc) {
            self.report(format!("{acc} is declared a second time"));
        }
        let info = AccInfo { dtype, len, depth: self.bindings.loops(), selected: None };
        if self.accs.insert(acc, info).is_none() {
            body.accs.push(acc);
        }
    }

    fn call_stmt(&mut self, body: &mut Body, vars: &[Var], id: DefId, args: &[Expr]) {
        let Some(def) = self.call(id, args) else { return };
        if vars.len() != def.results.len() {
            self.report(format!("{} gives {} results, not {}", def.name, def.results.len(), vars.len()));
        }
        for (&var, result) in vars.iter().zip(&def.results) {
            self.bind(body, var, result.dtype());
        }
    }

    fn set(&mut self, acc: AccId, index: &Index, value: &Expr) {
        let Some(info) = self.unselected(acc) else { return };
        self.written(value, info.dtype, acc);
        self.within(index, info.len, acc);
        self.access(Target::Acc(acc), info.depth, true, index);
    }

    fn store(&mut self, id: u32, index: &Index, value: &Expr) {
        let buf = crate::BufId(id);
        let Some(buffer) = self.nest.buffers.get(id as usize) else {
            return self.report(format!("there is no buffer {buf}"));
        };
        if buffer.role == BufferRole::In {
            self.report(format!("{buf} is an input and is not written"));
        }
        self.written(value, buffer.dtype, buf);
        self.within(index, buffer.len, buf);
        self.access(Target::Buf(buf), 0, true, index);
    }

    fn written(&mut self, value: &Expr, dtype: DType, what: impl std::fmt::Display) {
        if value.dtype() != dtype {
            self.report(format!("{what} is {dtype}, and {} is written to it", value.dtype()));
        }
    }

    /// Returns an accumulator to read or write elements of; reports one that is undeclared or was selected from.
    pub(super) fn unselected(&mut self, acc: AccId) -> Option<AccInfo> {
        let info = self.accs.get(&acc).copied();
        match info {
            None => self.report(format!("{acc} is not declared here")),
            Some(AccInfo { selected: Some(_), .. }) => {
                self.report(format!("{acc} has been selected from, and the order of its elements is lost"));
            }
            Some(_) => {}
        }
        info
    }

    fn select(&mut self, body: &mut Body, vars: &[Var], what: &Selection, acc: AccId, len: u64) {
        if len == 0 {
            self.report("there is no element to select from");
        }
        if let Selection::Nth(positions) = what {
            if positions.is_empty() || positions.len() > Selection::MAX_POSITIONS {
                let most = Selection::MAX_POSITIONS;
                self.report(format!("a selection has 1 to {most} positions, not {}", positions.len()));
            }
            if let Some(p) = positions.iter().find(|&&p| p >= len && len > 0) {
                self.report(format!("there is no position {p} among {len} elements"));
            }
        }
        let Some(info) = self.accs.get(&acc).copied() else {
            return self.report(format!("{acc} is not declared here"));
        };
        if len > info.len {
            self.report(format!("{acc} has {} elements, and {len} are needed", info.len));
        }
        if !body.accs.contains(&acc) {
            self.report(format!("{acc} is declared outside of this body"));
        }
        match info.selected {
            Some(before) if before != len => {
                self.report(format!("{acc} has been selected from by {before} elements, not {len}"));
            }
            _ => {
                self.accs.insert(acc, AccInfo { selected: Some(len), ..info });
            }
        }
        let results = what.results(info.dtype);
        if vars.len() != results.len() {
            self.report(format!("the selection gives {} results, not {}", results.len(), vars.len()));
        }
        for (&var, dtype) in vars.iter().zip(results) {
            self.bind(body, var, dtype);
        }
    }

    fn transpose(&mut self, body: &Body, t: &Transpose) {
        let Some(buffer) = self.nest.buffers.get(t.buf.0 as usize) else {
            return self.report(format!("there is no buffer {}", t.buf));
        };
        if buffer.role != BufferRole::In {
            self.report(format!("{} is no input", t.buf));
        }
        self.columns(body, t, buffer);
    }

    fn transposed_store(&mut self, body: &Body, t: &Transpose) {
        let Some(buffer) = self.nest.buffers.get(t.buf.0 as usize) else {
            return self.report(format!("there is no buffer {}", t.buf));
        };
        if buffer.role == BufferRole::In {
            self.report(format!("{} is an input and is not written", t.buf));
        }
        if t.within > 0 {
            self.report("a store reads nothing within a buffer");
        }
        if self.columns(body, t, buffer) {
            self.writes_columns(t);
        }
    }

    /// Notes the elements that a store of columns writes, for the rule of parallel loops.
    fn writes_columns(&mut self, t: &Transpose) {
        if t.columns.len() as u64 > MAX_LANES {
            return self.report(format!("{} columns are more than {MAX_LANES}", t.columns.len()));
        }
        for (stride, count) in [(t.stride, t.lanes), (t.run_stride, t.runs)] {
            if stride == 0 && count > 1 {
                return self.report(format!("{count} lanes write the same element of {}", t.buf));
            }
        }
        let Some(mut terms) = self.bindings.terms(&t.first).filter(|_| !self.bindings.never_runs()) else { return };
        terms.push(Term::within_statement(0, t.stride, t.lanes));
        terms.push(Term::within_statement(1, t.run_stride, t.runs));
        let Site::Stmt(stmt) = self.place else { return };
        for &column in &t.columns {
            let offset = t.first.offset.saturating_add(column as i64);
            let (target, terms) = (Target::Buf(t.buf), terms.clone());
            self.accesses.push(Access { target, decl_depth: 0, write: true, offset, terms, stmt });
        }
    }

    /// Checks the accumulator and the columns of a transpose; returns true if there are columns.
    fn columns(&mut self, body: &Body, t: &Transpose, buffer: &Buffer) -> bool {
        let strides = [t.stride, t.run_stride].map(i64::unsigned_abs);
        let last = t.columns.iter().copied().max().unwrap_or(0);
        let sizes = [t.lanes, t.runs, strides[0], strides[1], last, t.within];
        if let Some(size) = sizes.into_iter().find(|&size| size > i64::MAX as u64 >> 1) {
            self.report(format!("{size} elements are above 2^62 - 1"));
            return false;
        }
        if t.lanes == 0 || t.runs == 0 || t.columns.is_empty() {
            self.report("there is no lane or no column");
            return false;
        }
        if t.lanes > MAX_LANES {
            self.report(format!("{} lanes are more than {MAX_LANES}", t.lanes));
        }
        if t.runs > MAX_LANES {
            self.report(format!("{} runs of lanes are more than {MAX_LANES}", t.runs));
        }
        if t.columns[0] != 0 || t.columns.windows(2).any(|pair| pair[0] >= pair[1]) {
            self.report("the columns do not ascend from 0");
        }
        let Some(info) = self.unselected(t.acc) else { return false };
        if info.dtype != buffer.dtype {
            self.report(format!("{} is {}, and {} is {}", t.acc, info.dtype, t.buf, buffer.dtype));
        }
        if t.elements() > info.len {
            self.report(format!("{} has {} elements, and {} are needed", t.acc, info.len, t.elements()));
        }
        if !body.accs.contains(&t.acc) {
            self.report(format!("{} is declared outside of this body", t.acc));
        }
        let (least, greatest) = t.span();
        let last = greatest.max(i128::from(t.within) - 1);
        self.span_within(&t.first, (least, last), buffer.len, t.buf);
        true
    }

    /// Reports loops of which several iterations at once change the same elements of an accumulator, which this many
    /// loops are around.
    fn alone(&mut self, acc: AccId, depth: usize, around: &[&Loop]) {
        // A loop that declares the accumulator in its body has at most that many loops around it.
        for l in around.iter().skip(depth) {
            let several = self.bindings.most_iterations(l.extent) > 1;
            if l.kind != LoopKind::Seq && several && !self.bindings.never_runs() {
                self.report(format!("iterations of {} write the same elements of {acc}", l.var));
            }
        }
    }

    /// Checks a merge or a fold of `states` states of `elems` elements.
    fn combine(&mut self, accs: &[AccId], id: DefId, states: u64, elems: u64, around: &[&Loop]) {
        let mut types = Vec::new();
        for (i, acc) in accs.iter().enumerate() {
            if accs[..i].contains(acc) {
                self.report(format!("{acc} stands there twice"));
            }
            let Some(info) = self.unselected(*acc) else { continue };
            types.push(info.dtype);
            if u128::from(states) * u128::from(elems) > u128::from(info.len) {
                self.report(format!("{acc} has {} elements, and {states} * {elems} are needed", info.len));
            }
            self.alone(*acc, info.depth, around);
        }
        let Some(def) = self.nest.defs.get(id.0 as usize) else {
            return self.report(format!("there is no definition {id}"));
        };
        // With an accumulator missing, which is reported, the types cannot be compared.
        if types.len() != accs.len() {
            return;
        }
        let results: Vec<DType> = def.results.iter().map(Expr::dtype).collect();
        if def.params != [types.as_slice(), types.as_slice()].concat() || results != types {
            let words: Vec<&str> = types.iter().map(|d| d.name()).collect();
            self.report(format!("{} does not combine two states ({}) into one", def.name, words.join(", ")));
        }
    }
}
