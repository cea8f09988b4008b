#include "textflag.h"

// func multiply4x16(k int, a *float32, lda int, b, c *float32, ldc int, bias *float32)
//
// V0..V15 hold 4 rows of 16 sums; each step adds one number of each row of a
// times 16 numbers of b.
TEXT ·multiply4x16(SB), NOSPLIT, $0-56
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD lda+16(FP), R2
	MOVD b+24(FP), R3
	MOVD c+32(FP), R4
	MOVD ldc+40(FP), R5
	MOVD bias+48(FP), R6
	LSL  $2, R2, R2
	LSL  $2, R5, R5
	ADD  R2, R1, R7
	ADD  R2, R7, R8
	ADD  R2, R8, R9
	VLD1 (R6), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R6), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1 (R6), [V8.S4, V9.S4, V10.S4, V11.S4]
	VLD1 (R6), [V12.S4, V13.S4, V14.S4, V15.S4]

step:
	VLD1.P  64(R3), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1R.P 4(R1), [V20.S4]
	VLD1R.P 4(R7), [V21.S4]
	VLD1R.P 4(R8), [V22.S4]
	VLD1R.P 4(R9), [V23.S4]
	VFMLA   V16.S4, V20.S4, V0.S4
	VFMLA   V17.S4, V20.S4, V1.S4
	VFMLA   V18.S4, V20.S4, V2.S4
	VFMLA   V19.S4, V20.S4, V3.S4
	VFMLA   V16.S4, V21.S4, V4.S4
	VFMLA   V17.S4, V21.S4, V5.S4
	VFMLA   V18.S4, V21.S4, V6.S4
	VFMLA   V19.S4, V21.S4, V7.S4
	VFMLA   V16.S4, V22.S4, V8.S4
	VFMLA   V17.S4, V22.S4, V9.S4
	VFMLA   V18.S4, V22.S4, V10.S4
	VFMLA   V19.S4, V22.S4, V11.S4
	VFMLA   V16.S4, V23.S4, V12.S4
	VFMLA   V17.S4, V23.S4, V13.S4
	VFMLA   V18.S4, V23.S4, V14.S4
	VFMLA   V19.S4, V23.S4, V15.S4
	SUBS    $1, R0, R0
	BNE     step

	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R4)
	ADD  R5, R4, R4
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R4)
	ADD  R5, R4, R4
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R4)
	ADD  R5, R4, R4
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R4)
	RET
