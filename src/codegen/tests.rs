//! Tests that generators make every form of the [table](crate::forms): one operation alone, in lanes, and in wide
//! functions also outside lanes.

use super::clif::{self, Traits};
use crate::forms::{Form, counts, form};
use crate::target::Target;
use crate::vectors::Vectors;
use cranefold_ir::{
    BufId, Buffer, BufferRole, DType, Expr, Index, Loop, LoopKind, LoopVar, Nest, Op, Over, Scalar, Stmt, verify,
};
use cranelift_frontend::FunctionBuilderContext;

/// All types but bool.
fn numbers() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool)
}

const SETS: [Vectors; 3] =
    [Vectors::BASE, Vectors { bits: 256, ..Vectors::BASE }, Vectors { bits: 512, ..Vectors::BASE }];

/// The nest `x[n + 1][l] = value` over lanes, or of one element; `operands` are the types of its inputs.
struct Case {
    buffers: Vec<Buffer>,
    vectors: Vectors,
    lanes: u64,
}

impl Case {
    fn new(vectors: Vectors, widest: DType, is_vector: bool) -> Case {
        let lanes = if is_vector { u64::from(vectors.bits / 8) / widest.bytes() } else { 1 };
        Case { buffers: vec![], vectors, lanes }
    }

    /// An element of a new input.
    fn load(&mut self, dtype: DType) -> Expr {
        self.buffers.push(Buffer { role: BufferRole::In, dtype, len: self.lanes });
        Expr::Load(BufId(self.buffers.len() as u32 - 1), dtype, self.index())
    }

    /// A condition over elements of a type.
    fn condition(&mut self, dtype: DType) -> Expr {
        let operands = vec![self.load(dtype), self.load(dtype)];
        Expr::op(Op::Lt, operands)
    }

    fn index(&self) -> Index {
        if self.lanes > 1 { Index::term(LANE, 1) } else { Index::constant(0) }
    }

    /// Generates the code of an output with this value.
    fn generate(mut self, value: Expr) {
        let dtype = value.dtype();
        self.buffers.push(Buffer { role: BufferRole::Out, dtype, len: self.lanes });
        let store = Stmt::Store { buf: BufId(self.buffers.len() as u32 - 1), index: self.index(), value };
        let body = match self.lanes {
            1 => vec![store],
            lanes => vec![Stmt::For(Loop::new(LANE, lanes, LoopKind::Lanes, vec![store]))],
        };
        let body = if self.vectors.are_wide() { vec![Stmt::Wide { body }] } else { body };
        let nest = Nest { name: "form".into(), buffers: self.buffers, defs: vec![], body };
        verify(&nest).unwrap_or_else(|e| panic!("{e}\n{nest}"));
        let target = Target::new("x86_64-unknown-none", "x86-64-v4").expect("a target");
        let made = clif::function(&nest, self.vectors, Traits::of(&**target.isa()), &mut FunctionBuilderContext::new());
        made.map(drop).unwrap_or_else(|e| panic!("{:?}: {e}\n{nest}", self.vectors));
    }
}

const LANE: LoopVar = LoopVar { over: Over::Lane, id: 0 };

/// The operation on inputs of a type. Conditions are comparisons of type `compared`, a truth value selects, and the
/// amount of a shift is a constant. A form of other operands needs them here.
fn value(case: &mut Case, op: Op, result: DType, from: DType, compared: DType) -> Expr {
    let operand = |case: &mut Case, dtype| match dtype {
        DType::Bool => case.condition(compared),
        _ => case.load(dtype),
    };
    let args = match op {
        Op::Select => vec![case.condition(compared), case.load(result), case.load(result)],
        Op::Shl | Op::Shr => vec![case.load(from), Expr::Const(Scalar::int(from, 3))],
        _ => (0..op.arity()).map(|_| operand(case, from)).collect(),
    };
    match Expr::typed(op, result, args) {
        truth if result == DType::Bool => {
            let (yes, no) = (case.load(compared), case.load(compared));
            truth.select(yes, no)
        }
        value => value,
    }
}

fn generates(vectors: Vectors, op: Op, result: DType, from: DType) -> bool {
    let condition = |dtype: &DType| dtype.is_int() || matches!(dtype, DType::F32 | DType::F64);
    let compared: Vec<DType> = match (from, form(vectors, op, result, from)) {
        (_, Form::Absent | Form::Defined) => return false,
        (DType::Bool, _) => numbers().filter(condition).collect(),
        _ => vec![from],
    };
    for compared in compared {
        let widest = [result, from, compared].into_iter().max_by_key(|d| d.bytes()).expect("three");
        for is_vector in [true, false] {
            if is_vector || vectors.are_wide() {
                let mut case = Case::new(vectors, widest, is_vector);
                let value = value(&mut case, op, result, from, compared);
                case.generate(value);
            }
        }
    }
    true
}

#[test]
fn every_form_has_code() {
    let types = DType::ALL;
    let mut made = [0; SETS.len()];
    for (set, made) in SETS.into_iter().zip(&mut made) {
        for op in Op::ALL {
            for (result, from) in types.into_iter().flat_map(|r| types.map(move |f| (r, f))) {
                let args = match op {
                    Op::Select => vec![DType::Bool, result, result],
                    _ => vec![from; op.arity()],
                };
                let is_of = op != Op::Select || from == DType::Bool && result != DType::Bool;
                if is_of && op.accepts(result, &args) {
                    *made += usize::from(generates(set, op, result, from));
                }
            }
        }
    }
    assert!(made[0] < made[1] && made[1] < made[2], "wider vectors have more forms: {made:?}");
}

#[test]
fn every_position_has_code() {
    for vectors in SETS {
        for dtype in numbers().filter(|d| d.is_int() && counts(vectors)) {
            let case = Case::new(vectors, dtype, true);
            let index = case.index();
            case.generate(Expr::At(dtype, index));
        }
    }
}
