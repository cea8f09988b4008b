/**
 * A fetch for https addresses.
 *
 * @param {{ caFile?: string, certFile?: string, keyFile?: string }} files in PEM
 * @returns {typeof fetch}
 */
export function fetchWithCertificates({ caFile, certFile, keyFile }: {
    caFile?: string;
    certFile?: string;
    keyFile?: string;
}): typeof fetch;
