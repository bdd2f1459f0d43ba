//! The compiler: its options, compilations of one text or many, statistics.

use crate::error::{Code, Failure, OwnedError, free, get, give, given, guard, list, place, text};
use crate::kernel::Kernel;
use cranefold::{Executor, Serial, Spec, Spinning};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

/// The options of a compiler, which are `cranefold_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// The bytes of this struct, as the caller knows it.
    pub struct_size: usize,
    pub width: u32,
    pub threads: u32,
    pub most_kernels: u64,
    pub most_code_bytes: u64,
    pub schedules: *const c_char,
}

/// The most threads that a compiler may have.
pub const MOST_THREADS: u32 = 1024;

/// The counts of a compiler, which are `cranefold_statistics`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    pub hits: u64,
    pub misses: u64,
    pub compiles: u64,
    pub failures: u64,
    pub evictions: u64,
    pub kernels: u64,
    pub code_bytes: u64,
}

/// A compiler, and the threads that run its kernels.
#[derive(Debug)]
pub struct Compiler {
    pub compiler: cranefold::Compiler,
    pool: Option<Arc<Spinning>>,
}

impl Compiler {
    fn new(options: &Options, schedules: Option<&str>) -> Result<Compiler, Failure> {
        let least = size_of::<Options>();
        if options.struct_size < least {
            let message = format!("`options` says it has {} bytes, of at least {least}", options.struct_size);
            return Err(Failure::new(Code::Argument, message));
        }
        let threads = options.threads.max(1);
        if threads > MOST_THREADS {
            let message = format!("`options` asks for {threads} threads, above the limit of {MOST_THREADS}");
            return Err(Failure::new(Code::Argument, message));
        }
        let mut builder = cranefold::Compiler::builder().threads(threads as usize);
        if options.width != 0 {
            builder = builder.width(options.width);
        }
        if options.most_kernels != 0 {
            builder = builder.most_kernels(usize::try_from(options.most_kernels).unwrap_or(usize::MAX));
        }
        if options.most_code_bytes != 0 {
            builder = builder.most_code_bytes(options.most_code_bytes);
        }
        if let Some(path) = schedules {
            builder = builder.schedules(path);
        }
        let compiler = builder.build()?;
        let refused = |error| Failure::new(Code::Memory, format!("there are no {threads} threads: {error}"));
        let pool = (threads > 1).then(|| Spinning::new(threads as usize)).transpose().map_err(refused)?;
        Ok(Compiler { compiler, pool: pool.map(Arc::new) })
    }

    fn compile(&self, spec: &str) -> Result<Kernel, Failure> {
        let kernel = self.compiler.compile(&spec.parse::<Spec>()?)?;
        Ok(Kernel::new(kernel, self.pool.clone()))
    }

    /// The kernels of several texts, made on the compiler's threads; none if one fails.
    fn compile_many(&self, specs: &[&str]) -> Result<Vec<Kernel>, Failure> {
        let made: Vec<OnceLock<Result<Kernel, Failure>>> = specs.iter().map(|_| OnceLock::new()).collect();
        let executor: &dyn Executor = self.pool.as_deref().map_or(&Serial, |pool| pool);
        executor.run(specs.len(), &|item| {
            made[item].get_or_init(|| self.compile(specs[item]).map_err(|failure| failure.of_item(item)));
        });
        made.into_iter().map(|one| one.into_inner().expect("an executor runs each part")).collect()
    }
}

/// Makes a compiler for this machine.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compiler_new(
    options: *const Options,
    compiler: *mut *mut Compiler,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, options) = unsafe { (place(compiler, "compiler")?, options.as_ref()) };
        let default = Options {
            struct_size: size_of::<Options>(),
            width: 0,
            threads: 0,
            most_kernels: 0,
            most_code_bytes: 0,
            schedules: std::ptr::null(),
        };
        let options = options.unwrap_or(&default);
        let is_named = options.struct_size >= size_of::<Options>() && !options.schedules.is_null();
        // SAFETY: as above.
        let schedules = is_named.then(|| unsafe { text(options.schedules, "schedules") }).transpose()?;
        give(into, Compiler::new(options, schedules)?);
        Ok(())
    })
}

/// Frees a compiler; its kernels stay.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compiler_free(compiler: *mut Compiler) {
    // SAFETY: the caller keeps the header's contract.
    unsafe { free(compiler) }
}

/// Drops all code that no kernel holds.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compiler_clear(compiler: *const Compiler) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        unsafe { given(compiler, "compiler")? }.compiler.clear();
        Ok(())
    })
}

/// The bits of the widest vectors of the code; 0 of null.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compiler_width(compiler: *const Compiler) -> u32 {
    // SAFETY: the caller keeps the header's contract.
    get(0, || unsafe { compiler.as_ref() }.map(|compiler| compiler.compiler.vectors().bits))
}

/// Writes the counts of the work done so far.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compiler_statistics(
    compiler: *const Compiler,
    statistics: *mut Statistics,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, compiler) = unsafe { (place(statistics, "statistics")?, given(compiler, "compiler")?) };
        let told = compiler.compiler.statistics();
        into.write(Statistics {
            hits: told.hits,
            misses: told.misses,
            compiles: told.compiles,
            failures: told.failures,
            evictions: told.evictions,
            kernels: told.kernels,
            code_bytes: told.code_bytes,
        });
        Ok(())
    })
}

/// The kernel of a spec's text.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compile(
    compiler: *const Compiler,
    spec: *const c_char,
    kernel: *mut *mut Kernel,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (into, compiler, spec) =
            unsafe { (place(kernel, "kernel")?, given(compiler, "compiler")?, text(spec, "spec")?) };
        give(into, compiler.compile(spec)?);
        Ok(())
    })
}

/// The kernels of several texts: all, or none.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cranefold_compile_many(
    compiler: *const Compiler,
    specs: *const *const c_char,
    count: usize,
    kernels: *mut *mut Kernel,
) -> *mut OwnedError {
    guard(|| {
        // SAFETY: the caller keeps the header's contract.
        let (compiler, specs) = unsafe { (given(compiler, "compiler")?, list(specs, count, "specs")?) };
        // SAFETY: as above; it is checked like a list that is read, and nothing of it is read.
        unsafe { list(kernels.cast_const().cast::<MaybeUninit<*mut Kernel>>(), count, "kernels")? };
        let of_item = |(item, &one)| {
            // SAFETY: as above.
            unsafe { text(one, "specs") }.map_err(|failure| failure.of_item(item))
        };
        let specs: Vec<&str> = specs.iter().enumerate().map(of_item).collect::<Result<_, _>>()?;
        for (item, kernel) in compiler.compile_many(&specs)?.into_iter().enumerate() {
            // SAFETY: as above: there is a place for each.
            unsafe { kernels.add(item).write(Box::into_raw(Box::new(kernel))) };
        }
        Ok(())
    })
}
