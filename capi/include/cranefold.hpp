// cranefold.hpp: cranefold.h for C++20. Handles free themselves, errors are exceptions of the type cranefold::error, and
// tensors are made of spans. Every rule of ownership, threads and memory is that of cranefold.h.
#ifndef CRANEFOLD_HPP
#define CRANEFOLD_HPP

#include "cranefold.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cranefold {

// An error of the library.
class error : public std::runtime_error {
  public:
    // Takes the error and frees it.
    explicit error(cranefold_error *given)
        : std::runtime_error(cranefold_error_message(given)), code_(cranefold_error_code(given)),
          place_(cranefold_error_place(given)), item_(cranefold_error_item(given)) {
        cranefold_error_free(given);
    }
    // One of CRANEFOLD_ERROR_ARGUMENT to CRANEFOLD_ERROR_INTERNAL.
    [[nodiscard]] std::int32_t code() const noexcept { return code_; }
    // The byte of the text at which the fault is, or -1.
    [[nodiscard]] std::int64_t place() const noexcept { return place_; }
    // The number of the item at fault among several, or -1.
    [[nodiscard]] std::int64_t item() const noexcept { return item_; }

  private:
    std::int32_t code_;
    std::int64_t place_;
    std::int64_t item_;
};

// Throws the error of a function that has failed.
inline void check(cranefold_error *given) {
    if (given) throw error(given);
}

// The element type of a C++ type; 16-bit floats are given by their dtype.
template <class T> constexpr cranefold_dtype dtype_of() {
    using U = std::remove_cv_t<T>;
    constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(U));
    if constexpr (std::is_same_v<U, bool>) {
        static_assert(sizeof(bool) == 1);
        return {CRANEFOLD_BOOL, bits, 1};
    } else if constexpr (std::is_floating_point_v<U>) {
        static_assert(sizeof(U) == 4 || sizeof(U) == 8, "float or double");
        return {CRANEFOLD_FLOAT, bits, 1};
    } else {
        static_assert(std::is_integral_v<U>, "a number");
        return {std::is_signed_v<U> ? CRANEFOLD_INT : CRANEFOLD_UINT, bits, 1};
    }
}

// A view of the caller's memory, with a shape of its own.
class tensor {
  public:
    // A row-major tensor.
    tensor(void *data, cranefold_dtype dtype, std::vector<std::int64_t> shape)
        : data_(data), dtype_(dtype), ndim_(static_cast<std::int32_t>(shape.size())), shape_(std::move(shape)) {}
    tensor(void *data, cranefold_dtype dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
        : tensor(data, dtype, std::move(shape)) {
        if (strides.size() != shape_.size()) throw std::invalid_argument("as many strides as extents");
        strides_ = std::move(strides);
    }
    template <class T> tensor(T *data, std::vector<std::int64_t> shape)
        : tensor(mutable_(data), dtype_of<T>(), std::move(shape)) {}
    // Plain memory: the elements lie where the spec says, from the start of the operand's span.
    template <class T, std::size_t N> explicit tensor(std::span<T, N> memory)
        : tensor(mutable_(memory.data()), dtype_of<T>(), {static_cast<std::int64_t>(memory.size())}) {
        ndim_ = CRANEFOLD_BUFFER;
    }
    // One value: a scalar of a spec, or an output without axes.
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> explicit tensor(T &value)
        : tensor(mutable_(&value), dtype_of<T>(), {}) {}

    // The form of C, which points into this tensor.
    [[nodiscard]] cranefold_tensor get() const {
        return {data_, {CRANEFOLD_CPU, 0}, ndim_, dtype_, shape_.data(), strides_.empty() ? nullptr : strides_.data(), 0};
    }

  private:
    // Inputs are not written, but for those that a call writes over.
    template <class T> static void *mutable_(T *data) { return const_cast<std::remove_cv_t<T> *>(data); }

    void *data_;
    cranefold_dtype dtype_;
    std::int32_t ndim_;
    std::vector<std::int64_t> shape_;
    std::vector<std::int64_t> strides_;
};

namespace detail {

inline std::vector<cranefold_tensor> all(std::span<const tensor> tensors) {
    std::vector<cranefold_tensor> list;
    list.reserve(tensors.size());
    for (const tensor &one : tensors) list.push_back(one.get());
    return list;
}

inline std::vector<std::uint64_t> bounds(const std::vector<std::pair<std::uint64_t, std::uint64_t>> &ranges) {
    std::vector<std::uint64_t> all;
    for (const auto &[first, end] : ranges) all.insert(all.end(), {first, end});
    return all;
}

template <auto free> struct freed {
    template <class T> void operator()(T *handle) const noexcept { free(handle); }
};
template <class T, auto free> using handle = std::unique_ptr<T, freed<free>>;

// Takes a text of the library.
inline std::string taken(char *text) {
    handle<char, cranefold_text_free> owned(text);
    return std::string(owned.get());
}

} // namespace detail

using tensors = std::initializer_list<tensor>;

// A call whose parts the caller runs, each once, on any threads, before `finish`.
class call {
  public:
    explicit call(cranefold_call *given) : handle_(given) {}
    [[nodiscard]] std::size_t parts() const { return cranefold_call_parts(handle_.get()); }
    void run(std::size_t part) const { check(cranefold_call_run(handle_.get(), part)); }
    void finish() const { check(cranefold_call_finish(handle_.get())); }

  private:
    detail::handle<cranefold_call, cranefold_call_free> handle_;
};

// A kernel; copies share its code.
class kernel {
  public:
    explicit kernel(cranefold_kernel *given) : handle_(given) {}
    kernel(const kernel &other) : handle_(other.clone()) {}
    kernel(kernel &&) noexcept = default;
    kernel &operator=(const kernel &other) {
        if (this != &other) handle_.reset(other.clone());
        return *this;
    }
    kernel &operator=(kernel &&) noexcept = default;
    ~kernel() = default;

    void run(std::span<const tensor> inputs, std::span<const tensor> outputs) const {
        const auto in = detail::all(inputs), out = detail::all(outputs);
        check(cranefold_run(handle_.get(), in.data(), in.size(), out.data(), out.size()));
    }
    void run(tensors inputs, tensors outputs) const {
        run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
    }
    // Runs in the caller's scratch memory: `run_scratch` bytes, aligned to 64.
    void run_in(tensors inputs, tensors outputs, std::span<std::byte> scratch) const {
        const auto in = detail::all(std::span(inputs.begin(), inputs.size()));
        const auto out = detail::all(std::span(outputs.begin(), outputs.size()));
        check(cranefold_run_in(handle_.get(), in.data(), in.size(), out.data(), out.size(), scratch.data(),
                               scratch.size()));
    }
    // A call in parts, with scratch memory of its own.
    [[nodiscard]] cranefold::call call(tensors inputs, tensors outputs) const {
        const auto in = detail::all(std::span(inputs.begin(), inputs.size()));
        const auto out = detail::all(std::span(outputs.begin(), outputs.size()));
        cranefold_call *made = nullptr;
        check(cranefold_call_new(handle_.get(), in.data(), in.size(), out.data(), out.size(), nullptr, 0, &made));
        return cranefold::call(made);
    }
    // Runs on raw pointers, unchecked: see cranefold_run_raw.
    void run_raw(void *const *pointers) const { check(cranefold_run_raw(handle_.get(), pointers)); }
    // The function of the machine code, or null: see cranefold_kernel_entry.
    [[nodiscard]] cranefold_entry entry() const { return cranefold_kernel_entry(handle_.get()); }

    [[nodiscard]] std::string spec() const { return cranefold_kernel_spec(handle_.get()); }
    [[nodiscard]] std::size_t inputs() const { return cranefold_kernel_inputs(handle_.get()); }
    [[nodiscard]] std::size_t outputs() const { return cranefold_kernel_outputs(handle_.get()); }
    // The pointers of a description live as long as this kernel or a copy of it.
    [[nodiscard]] cranefold_operand input(std::size_t number) const {
        cranefold_operand operand;
        check(cranefold_kernel_input(handle_.get(), number, &operand));
        return operand;
    }
    [[nodiscard]] cranefold_operand output(std::size_t number) const {
        cranefold_operand operand;
        check(cranefold_kernel_output(handle_.get(), number, &operand));
        return operand;
    }
    [[nodiscard]] std::size_t parts() const { return cranefold_kernel_parts(handle_.get()); }
    [[nodiscard]] std::uint64_t run_scratch() const { return cranefold_kernel_run_scratch(handle_.get()); }
    [[nodiscard]] std::uint64_t call_scratch() const { return cranefold_kernel_call_scratch(handle_.get()); }
    [[nodiscard]] std::string explain() const {
        char *page = nullptr;
        check(cranefold_explain(handle_.get(), &page));
        return detail::taken(page);
    }
    [[nodiscard]] std::string dump(const std::string &stage) const {
        char *text = nullptr;
        check(cranefold_dump(handle_.get(), stage.c_str(), &text));
        return detail::taken(text);
    }

  private:
    [[nodiscard]] cranefold_kernel *clone() const {
        cranefold_kernel *made = nullptr;
        if (handle_) check(cranefold_kernel_clone(handle_.get(), &made));
        return made;
    }

    detail::handle<cranefold_kernel, cranefold_kernel_free> handle_;
};

// A range of blocks of partial results.
class shard {
  public:
    explicit shard(cranefold_shard *given) : handle_(given) {}
    [[nodiscard]] std::size_t inputs() const { return cranefold_shard_inputs(handle_.get()); }
    [[nodiscard]] cranefold_span input(std::size_t number) const {
        cranefold_span span;
        check(cranefold_shard_input(handle_.get(), number, &span));
        return span;
    }
    void run(tensors inputs, std::span<std::byte> state) const {
        const auto in = detail::all(std::span(inputs.begin(), inputs.size()));
        check(cranefold_shard_run(handle_.get(), in.data(), in.size(), state.data(), state.size()));
    }

  private:
    detail::handle<cranefold_shard, cranefold_shard_free> handle_;
};

// The partial results of a reduction.
class partial {
  public:
    explicit partial(cranefold_partial *given) : handle_(given) {}
    [[nodiscard]] std::uint64_t blocks() const { return cranefold_partial_blocks(handle_.get()); }
    [[nodiscard]] std::size_t state_bytes() const { return cranefold_partial_state_bytes(handle_.get()); }
    // The axis that chunks are ranges of.
    [[nodiscard]] std::size_t axis() const {
        std::size_t axis = 0;
        check(cranefold_partial_axis(handle_.get(), &axis));
        return axis;
    }
    // The bytes of a state that have to be sent.
    [[nodiscard]] std::size_t used_bytes(std::span<const std::byte> state) const {
        std::size_t used = 0;
        check(cranefold_partial_used_bytes(handle_.get(), state.data(), state.size(), &used));
        return used;
    }
    // Those of the state of a range of the axis.
    [[nodiscard]] std::size_t range_bytes(std::uint64_t first, std::uint64_t end) const {
        std::size_t used = 0;
        check(cranefold_partial_range_bytes(handle_.get(), first, end, &used));
        return used;
    }
    // The first block and the end of each of `count` ranges.
    [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(std::size_t count) const {
        std::vector<std::uint64_t> bounds(2 * count);
        check(cranefold_partial_ranges(handle_.get(), count, bounds.data()));
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
        for (std::size_t n = 0; n < count; n++) all.emplace_back(bounds[2 * n], bounds[2 * n + 1]);
        return all;
    }
    // The shard of a chunk: the first index and the end along each axis.
    [[nodiscard]] cranefold::shard shard_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>> &chunk) const {
        const std::vector<std::uint64_t> bounds = detail::bounds(chunk);
        cranefold_shard *made = nullptr;
        check(cranefold_partial_shard_of(handle_.get(), bounds.data(), chunk.size(), &made));
        return cranefold::shard(made);
    }
    [[nodiscard]] cranefold::shard shard(std::uint64_t first, std::uint64_t end) const {
        cranefold_shard *made = nullptr;
        check(cranefold_partial_shard(handle_.get(), first, end, &made));
        return cranefold::shard(made);
    }
    // A state of no blocks.
    [[nodiscard]] std::vector<std::byte> identity() const {
        std::vector<std::byte> state(state_bytes());
        check(cranefold_partial_identity(handle_.get(), state.data(), state.size(), 1));
        return state;
    }
    void combine(std::span<const std::byte> from, std::span<std::byte> into) const {
        if (from.size() != into.size()) throw std::invalid_argument("states of one length");
        check(cranefold_partial_combine(handle_.get(), from.data(), into.data(), into.size(), 1));
    }
    void finish(std::span<const std::byte> state, tensors inputs, tensors outputs) const {
        const auto in = detail::all(std::span(inputs.begin(), inputs.size()));
        const auto out = detail::all(std::span(outputs.begin(), outputs.size()));
        check(cranefold_partial_finish(handle_.get(), state.data(), state.size(), 1, in.data(), in.size(), out.data(),
                                       out.size()));
    }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> blocks_of(std::span<const std::byte> state) const {
        std::pair<std::uint64_t, std::uint64_t> range;
        check(cranefold_partial_blocks_of(handle_.get(), state.data(), state.size(), &range.first, &range.second));
        return range;
    }
    // The range of the axis that a state has.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> range_of(std::span<const std::byte> state) const {
        std::pair<std::uint64_t, std::uint64_t> range;
        check(cranefold_partial_range_of(handle_.get(), state.data(), state.size(), &range.first, &range.second));
        return range;
    }
    // The numbers in the spec of the inputs that `finish` takes.
    [[nodiscard]] std::vector<std::int64_t> finish_inputs() const {
        std::vector<std::int64_t> numbers(cranefold_partial_finish_inputs(handle_.get()));
        for (std::size_t n = 0; n < numbers.size(); n++)
            numbers[n] = cranefold_partial_finish_input(handle_.get(), n);
        return numbers;
    }
    [[nodiscard]] std::string dump() const {
        char *text = nullptr;
        check(cranefold_partial_dump(handle_.get(), &text));
        return detail::taken(text);
    }

  private:
    detail::handle<cranefold_partial, cranefold_partial_free> handle_;
};

// The options of a compiler; 0 is each default.
struct options {
    std::uint32_t width = 0;
    std::uint32_t threads = 0;
    std::uint64_t most_kernels = 0;
    std::uint64_t most_code_bytes = 0;
    std::string schedules = {};  // the path of a file that `cranefold tune` has written
};

// A compiler for this machine.
class compiler {
  public:
    explicit compiler(const options &wanted = {}) {
        const cranefold_options all = {sizeof all, wanted.width, wanted.threads, wanted.most_kernels,
                                       wanted.most_code_bytes,
                                       wanted.schedules.empty() ? nullptr : wanted.schedules.c_str()};
        cranefold_compiler *made = nullptr;
        check(cranefold_compiler_new(&all, &made));
        handle_.reset(made);
    }
    [[nodiscard]] kernel compile(const std::string &spec) const {
        cranefold_kernel *made = nullptr;
        check(cranefold_compile(handle_.get(), spec.c_str(), &made));
        return kernel(made);
    }
    [[nodiscard]] std::vector<kernel> compile_many(std::span<const std::string> specs) const {
        std::vector<const char *> texts;
        for (const std::string &spec : specs) texts.push_back(spec.c_str());
        std::vector<cranefold_kernel *> made(specs.size());
        std::vector<kernel> kernels;
        kernels.reserve(specs.size());
        check(cranefold_compile_many(handle_.get(), texts.data(), texts.size(), made.data()));
        for (cranefold_kernel *one : made) kernels.emplace_back(one);
        return kernels;
    }
    [[nodiscard]] cranefold::partial partial(const std::string &spec) const {
        cranefold_partial *made = nullptr;
        check(cranefold_partial_new(handle_.get(), spec.c_str(), &made));
        return cranefold::partial(made);
    }
    // The partial results of a box of the kept axes: the first index and the end along each of them.
    [[nodiscard]] cranefold::partial
    partial_of(const std::string &spec, const std::vector<std::pair<std::uint64_t, std::uint64_t>> &kept) const {
        const std::vector<std::uint64_t> bounds = detail::bounds(kept);
        cranefold_partial *made = nullptr;
        check(cranefold_partial_of(handle_.get(), spec.c_str(), bounds.data(), kept.size(), &made));
        return cranefold::partial(made);
    }
    [[nodiscard]] cranefold_statistics statistics() const {
        cranefold_statistics told;
        check(cranefold_compiler_statistics(handle_.get(), &told));
        return told;
    }
    [[nodiscard]] std::uint32_t width() const { return cranefold_compiler_width(handle_.get()); }
    void clear() const { check(cranefold_compiler_clear(handle_.get())); }

  private:
    detail::handle<cranefold_compiler, cranefold_compiler_free> handle_;
};

} // namespace cranefold

#endif
