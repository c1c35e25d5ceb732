/* SPDX-License-Identifier: Apache-2.0 */
/* A library of which two copies have the same soname; they differ in one number. */
int worth(void);
int worth(void)
{
    return WORTH;
}
