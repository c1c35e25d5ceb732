/* SPDX-License-Identifier: Apache-2.0 */
/* A library that exists in two copies of one soname, which differ in a number. */
int worth(void);
int worth(void)
{
    return WORTH;
}
