/* SPDX-License-Identifier: MIT */
/* A recursive Fourier transform of radix two with scratch arrays, once for each FORM; programs.c
 * includes it for each. Its numbers are those modulo a prime, so that results are exact. */
#define FFT(function) TIDE_PASTE(fft_, TIDE_PASTE(FORM, _##function))

static __attribute__((noinline)) void FFT(transform)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                     uint32_t *data, size_t count, uint32_t root)
{
    size_t half = count / 2;
    if (count <= FFT_LEAST) {
        fft_direct(data, count, root);
        return;
    }
    FORM_BEGIN(FORM, c, &sites[FFT_TRANSFORM], (uint32_t, uint64_t), (uint32_t, even, half),
               (uint32_t, odd, half), (uint64_t, power, half));
    power[0] = 1;
    for (size_t i = 1; i < half; i++)
        power[i] = power[i - 1] * root % FFT_PRIME;
    for (size_t i = 0; i < half; i++) {
        even[i] = data[2 * i];
        odd[i] = data[2 * i + 1];
    }
    uint32_t inner = (uint32_t)((uint64_t)root * root % FFT_PRIME);
    FFT(transform)(c, sites, even, half, inner);
    FFT(transform)(c, sites, odd, half, inner);
    for (size_t i = 0; i < half; i++) {
        uint32_t turned = (uint32_t)(power[i] * odd[i] % FFT_PRIME);
        data[i] = (even[i] + turned) % FFT_PRIME;
        data[half + i] = (even[i] + FFT_PRIME - turned) % FFT_PRIME;
    }
    FORM_END(FORM, c, power, odd, even);
}

static __attribute__((noinline)) uint64_t FFT(encode)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                      uint64_t input)
{
    uint64_t sum = 0;
    FORM_BEGIN(FORM, c, &sites[FFT_ENCODE], (uint32_t), (uint32_t, data, FFT_COUNT));
    for (size_t i = 0; i < FFT_COUNT; i++)
        data[i] = (uint32_t)(i * (input + 7) * 2654435761u % FFT_PRIME);
    FFT(transform)(c, sites, data, FFT_COUNT, FFT_ROOT);
    for (size_t i = 0; i < FFT_COUNT; i++)
        sum = 31 * sum + data[i];
    FORM_END(FORM, c, data);
    return sum;
}
#undef FFT
