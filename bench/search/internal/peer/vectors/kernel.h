// Squared Euclidean distances in the compiler's vector types, which become
// AVX-512, AVX2 or NEON by -march=native. Four sums hide the latency of fused
// multiply-adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef float f16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));
typedef uint8_t b16 __attribute__((vector_size(16)));

inline f16 load(const float* p) {
    f16 v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline f16 load(const uint8_t* p) {
#ifdef __AVX512F__  // which the compiler does not make of the lines below
    return (f16)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
    f16 wide;
    for (int i = 0; i < 2; i++) {
        __m256 half = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * i))));
        std::memcpy(reinterpret_cast<float*>(&wide) + 8 * i, &half, sizeof half);
    }
    return wide;
#endif
    b16 v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(__builtin_convertvector(v, i16), f16);
}

// reduce is the sum of squares of one(j) over j < dim; wide(j) does 16 at once.
template <class W, class S>
inline float reduce(size_t dim, W wide, S one) {
    f16 a{}, b{}, c{}, d{};
    size_t j = 0;
    for (; j + 64 <= dim; j += 64) {
        f16 x = wide(j), y = wide(j + 16), z = wide(j + 32), w = wide(j + 48);
        a += x * x, b += y * y, c += z * z, d += w * w;
    }
    for (; j + 16 <= dim; j += 16) {
        f16 x = wide(j);
        a += x * x;
    }
    f16 all = (a + b) + (c + d);
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += all[i];
    for (; j < dim; j++) sum += one(j) * one(j);
    return sum;
}

inline float l2(const float* x, const float* y, size_t dim) {
    return reduce(
        dim, [=](size_t j) { return load(x + j) - load(y + j); }, [=](size_t j) { return x[j] - y[j]; });
}

// l2_code is |base - step*code|².
inline float l2_code(const float* base, const float* step, const uint8_t* code, size_t dim) {
    return reduce(
        dim, [=](size_t j) { return load(base + j) - load(step + j) * load(code + j); },
        [=](size_t j) { return base[j] - step[j] * code[j]; });
}

// l2_codes is |step*(a - b)|².
inline float l2_codes(const float* step, const uint8_t* a, const uint8_t* b, size_t dim) {
    return reduce(
        dim, [=](size_t j) { return load(step + j) * (load(a + j) - load(b + j)); },
        [=](size_t j) { return step[j] * (float(a[j]) - float(b[j])); });
}
