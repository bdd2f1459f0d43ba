//! The check that the parts of a problem fit together, for a problem that was read from text.

use super::{Dim, Distances, IndexBox, Offsets, OperandSpan, Problem, Work};
use cranefold_ir::DType;
use cranefold_ir::ops::{Form, ResultKind, in_memory};
use cranefold_ir::region::{Body, Reach};

impl Problem {
    /// Checks that the parts fit together, as those of a problem made from a spec do. What it does not find is
    /// boxes that overlap one another.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.inputs.is_empty() || self.outputs.is_empty() {
            return Err("there is an input and an output".into());
        }
        match &self.work {
            Work::Convert { .. } => self.check_convert()?,
            Work::Reduce(_) => self.check_reduce()?,
            Work::Region(body) => self.check_region(body)?,
        }
        // Totals are written without slices too.
        let of_slices = |(o, output): (usize, &OperandSpan)| output.len > 0 && self.output_reach(o) != Reach::Total;
        let written = self.outputs.iter().enumerate().any(of_slices) || self.values.iter().any(|v| v.len > 0);
        let reduces = match &self.work {
            Work::Convert { .. } => false,
            Work::Reduce(_) => self.count > 0 && written,
            Work::Region(body) => body.reductions() > 0 && self.count > 0 && written,
        };
        let is_empty = self.walks.is_empty() || self.walks.iter().any(|walk| walk.elements.is_empty());
        if written == self.slices.is_empty() || reduces == is_empty {
            return Err("there are slices if there are outputs, and elements if something is reduced".into());
        }
        for walk in &self.walks {
            let gathered =
                walk.gathered.as_ref().map(|extents| extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e)));
            if positions(&walk.elements)? != self.count || gathered.is_some_and(|n| n != Some(self.count)) {
                return Err(format!("the boxes of elements have not {} elements", self.count));
            }
        }
        let at_positions = if self.applies() && written { self.count } else { 0 };
        if positions(&self.positions)? != at_positions {
            return Err(format!("the boxes of positions have not {at_positions} positions"));
        }
        let slices = positions(&self.slices)?;
        if let Some(walk) = self.walks.iter().find(|walk| !(1..=slices.max(1)).contains(&walk.beside)) {
            return Err(format!("`beside {}` is outside 1 to {}", walk.beside, slices.max(1)));
        }
        self.check_places()?;
        self.check_inputs()?;
        self.check_outputs()
    }

    /// Checks that boxes move only in operands that they may move in.
    fn check_places(&self) -> Result<(), String> {
        let has = |boxes: &[IndexBox], moves: &dyn Fn(&Offsets) -> bool| {
            boxes.iter().any(|r| moves(&r.start) || r.dims.iter().any(|d| moves(&d.stride)))
        };
        if has(&self.slices, &|p| p.position != 0) || has(&self.positions, &|p| p.position != 0) {
            return Err("only boxes of elements have a position".into());
        }
        let moves_in = |i: usize| self.walks.iter().any(|walk| has(&walk.elements, &|p| p.inputs[i] != 0));
        if let Some(i) = (0..self.inputs.len()).find(|&i| !self.inputs[i].mapped && moves_in(i)) {
            return Err(format!("elements do not move in x{i}, which is marked `with`"));
        }
        if self.takes_position || self.gathers() {
            let slice = OperandSpan { dtype: DType::U8, len: self.count };
            for walk in &self.walks {
                self.check_bounds("the slice", &slice, &[&walk.elements], |p| p.position)?;
            }
        }
        Ok(())
    }

    fn check_inputs(&self) -> Result<(), String> {
        for (i, input) in self.inputs.iter().enumerate() {
            let (name, stride) = (format!("x{i}"), |p: &Offsets| p.inputs[i]);
            for walk in self.walks.iter().filter(|_| input.mapped) {
                self.check_bounds(&name, &input.operand, &[&self.slices, &walk.elements], stride)?;
            }
            self.check_bounds(&name, &input.operand, &[&self.slices, &self.positions], stride)?;
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<(), String> {
        for (o, output) in self.outputs.iter().chain(&self.values).enumerate() {
            let name = format!("x{}", self.inputs.len() + o);
            let reach = self.output_reach(o);
            for (slices, positions) in self.slices.iter().flat_map(|s| self.positions_of(s)) {
                let positions = if reach == Reach::Element { positions } else { &[] };
                let dims = slices.dims.iter().chain(positions).filter(|_| reach != Reach::Total);
                check_disjoint(&name, dims.map(|d| (d.extent, d.stride.outputs[o])))?;
            }
            self.check_bounds(&name, output, &[&self.slices, &self.positions], |p| p.outputs[o])?;
            for padding in self.padding.iter().filter(|p| p.output == o) {
                let place =
                    |distance: i64| Offsets { outputs: Distances::from_elem(distance, 1), ..Offsets::default() };
                let dims = padding.dims.iter().map(|&(extent, stride)| Dim { extent, stride: place(stride) });
                let region = IndexBox { start: place(padding.start), dims: dims.collect() };
                positions(std::slice::from_ref(&region))?;
                check_disjoint(&name, padding.dims.iter().copied())?;
                self.check_bounds(&name, output, &[&[region]], |p| p.outputs[0])?;
            }
        }
        match self.padding.iter().find(|p| p.output >= self.outputs.len()) {
            Some(p) => Err(format!("there is no output x{} that has padding", self.inputs.len() + p.output)),
            None => Ok(()),
        }
    }

    /// The axes that an output or a value of the slice depends on.
    fn output_reach(&self, output: usize) -> Reach {
        match &self.work {
            Work::Region(body) => body.reaches().outputs.get(output).copied().unwrap_or(Reach::Slice),
            Work::Convert { .. } | Work::Reduce(_) if self.applies() => Reach::Element,
            Work::Convert { .. } | Work::Reduce(_) => Reach::Slice,
        }
    }

    fn check_region(&self, body: &Body) -> Result<(), String> {
        let types = body.types().map_err(|e| e.to_string())?;
        if body.outputs.is_empty() || types.outputs != self.outputs.iter().map(|o| o.dtype).collect::<Vec<_>>() {
            return Err("the outputs are not those of the body".into());
        }
        if self.indices.len() != body.positions().len() {
            return Err("there is an extent for each position of the body".into());
        }
        let mut followed: Vec<usize> = self.walks.iter().flat_map(|walk| walk.reductions.iter().copied()).collect();
        followed.sort_unstable();
        if !self.walks.is_empty() && !followed.iter().copied().eq(0..body.reductions()) {
            return Err("each reduction follows one walk".into());
        }
        for (walk, reads) in body.reads_of_reductions().iter().enumerate() {
            let is_element = |i: usize| body.inputs.get(i).is_some_and(|input| input.reach == Reach::Element);
            if let Some(i) = reads.iter().find(|&&i| is_element(i) && !self.inputs[i].mapped) {
                return Err(format!("reduction {walk} reads x{i}, which is marked `with`"));
            }
        }
        if body.takes_position() != self.takes_position {
            return Err("`takes position` stands if and only if an op takes it".into());
        }
        match (body.totals(), &self.totals) {
            (None, None) => Ok(()),
            (Some(of), Some(totals)) if totals.work == Work::Region(of.body.clone()) => {
                let outputs: Vec<_> = of.outputs.iter().map(|&o| &self.outputs[o]).collect();
                let scalars: Vec<_> = of.scalars.iter().map(|&i| &self.inputs[i].operand).collect();
                let further = totals.inputs.iter().skip(of.values.len()).map(|input| &input.operand);
                match outputs.into_iter().eq(&totals.outputs) && scalars.into_iter().eq(further) {
                    true => totals.check(),
                    false => Err("the totals have other operands than the region".into()),
                }
            }
            _ => Err("the totals are not those of the body".into()),
        }
    }

    /// A box of slices, with the dims of each box of positions.
    fn positions_of<'a>(&'a self, slices: &'a IndexBox) -> Vec<(&'a IndexBox, &'a [Dim])> {
        match self.positions.is_empty() {
            true => vec![(slices, &[])],
            false => self.positions.iter().map(|p| (slices, &p.dims[..])).collect(),
        }
    }

    fn check_convert(&self) -> Result<(), String> {
        let ([input], [output]) = (&self.inputs[..], &self.outputs[..]) else {
            return Err("`convert` has one input and one output".into());
        };
        match (input.operand.dtype == DType::Bool) == (output.dtype == DType::Bool) {
            true => Ok(()),
            false => Err("bool converts to bool only, and only bool does".into()),
        }
    }

    fn check_reduce(&self) -> Result<(), String> {
        let Work::Reduce(recipe) = &self.work else { return Ok(()) };
        let types = self.types();
        if !matches!(recipe.accumulator, DType::F32 | DType::F64) {
            return Err(format!("{} is no accumulator", recipe.accumulator));
        }
        let element = recipe.element(&types.inputs).map_err(|e| e.to_string())?;
        if types.mapped.is_empty() {
            return Err("no input is marked `in`".into());
        }
        if let Some(row) = recipe.calls.iter().filter_map(|c| c.as_row()).find(|row| !row.takes(element)) {
            return Err(format!("`{}` does not take {element}", row.name));
        }
        let wide = types.inputs.iter().any(|(_, d)| *d == DType::F64) || element == DType::F64;
        if wide && recipe.accumulator == DType::F32 {
            return Err(format!("{} is no accumulator of {element}", recipe.accumulator));
        }
        let given: Vec<Option<DType>> = types.outputs.iter().map(|&d| Some(d)).collect();
        let values = recipe.values(&types.inputs, &types.inputs, &given).map_err(|e| e.to_string())?;
        if values.len() != self.outputs.len() {
            return Err(format!("there are {} results for {} outputs", values.len(), self.outputs.len()));
        }
        let greatest = recipe.greatest_counts(types.count);
        for (o, (&(kind, value), &output)) in values.iter().zip(&types.outputs).enumerate() {
            let bool_mismatch = (value == DType::Bool) != (output == DType::Bool);
            let holds = || greatest.get(o).copied().flatten().is_none_or(|most| output.holds(most));
            let no_count = kind == ResultKind::Count && !(output.is_int() && holds());
            if bool_mismatch || no_count {
                return Err(format!("{output} is no output for {value}"));
            }
        }
        if recipe.takes_position() != self.takes_position {
            return Err("`takes position` stands if and only if an op takes it".into());
        }
        recipe.computation(&types, Form::Plain, &|_, _, _| false).map(|_| ()).map_err(|e| e.to_string())
    }

    /// Checks that every position of these boxes, one from each list, lies in an operand.
    fn check_bounds(
        &self,
        name: &str,
        operand: &OperandSpan,
        lists: &[&[IndexBox]],
        distance: impl Fn(&Offsets) -> i64,
    ) -> Result<(), String> {
        let (mut low, mut high) = (0i128, 0i128);
        for list in lists.iter().filter(|list| !list.is_empty()) {
            let reaches = list.iter().map(|region| reach(region, &distance));
            let (lowest, highest) =
                reaches.fold((i128::MAX, i128::MIN), |(l, h), (low, high)| (l.min(low), h.max(high)));
            (low, high) = (low.saturating_add(lowest), high.saturating_add(highest));
        }
        let touched = operand.len > 0 && lists.iter().any(|list| !list.is_empty());
        let too_long = operand.len > i64::MAX as u64 / in_memory(operand.dtype).bytes();
        match !touched || (low >= 0 && high < i128::from(operand.len) && !too_long) {
            true => Ok(()),
            false => Err(format!("{name} has {} elements, and {low} to {high} are touched", operand.len)),
        }
    }
}

/// Checks that a box writes no place twice: in the order of magnitude, each stride exceeds the span of all smaller
/// strides.
fn check_disjoint(name: &str, dims: impl Iterator<Item = (u64, i64)>) -> Result<(), String> {
    let mut dims: Vec<(u64, u64)> = dims.map(|(extent, stride)| (extent, stride.unsigned_abs())).collect();
    dims.sort_by_key(|&(_, stride)| stride);
    let mut span = 1u64;
    for (extent, stride) in dims {
        if stride < span {
            return Err(format!("stride {stride} in {name} writes a place twice"));
        }
        span = span.saturating_add(stride.saturating_mul(extent - 1));
    }
    Ok(())
}

/// The number of positions in boxes.
fn positions(boxes: &[IndexBox]) -> Result<u64, String> {
    let mut all = 0u64;
    for region in boxes {
        let mut here = 1u64;
        for dim in &region.dims {
            let product = here.checked_mul(dim.extent).filter(|&n| dim.extent > 1 && n <= i64::MAX as u64);
            here =
                product.ok_or_else(|| format!("a dim has from 2 to {} positions, {} given", i64::MAX, dim.extent))?;
        }
        all = all.saturating_add(here);
    }
    Ok(all)
}

/// The least and greatest distance of a region's positions in an operand.
fn reach(region: &IndexBox, distance: &impl Fn(&Offsets) -> i64) -> (i128, i128) {
    let start = i128::from(distance(&region.start));
    region.dims.iter().fold((start, start), |(low, high), dim| {
        let reach = i128::from(distance(&dim.stride)) * i128::from(dim.extent.saturating_sub(1));
        (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)))
    })
}
