# Requests as ls-qpack's encoder writes them (pylsqpack 1.0.0), table of 0 bytes, 0 blocked streams.
table 0
section 0 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 4 0000d1d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1200ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f02f2b585ed6950958d27ad649391d663fffcf493acb3d1bcf0a39e377ffd2f464aec8f7477fff452c8f3cb4c191d808f46fccdc4eb3ffd07
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=1
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: 3chc73b{8dh--8b882bhb7}ej3e7d8j7{_fd88-g1d7=c8b9g5_73~0
section 8 0000d4d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf550a386a36355c303b346a39
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: 8j65\0;4j9
section 12 0000d1d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d055f637e3738
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: _c~78
section 16 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1206bf5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d87fffc433704448f2df2b26c190bcb7a2fffcd74805fffc2208da0cafc8dc737ff7a17ee710bffcfff5b24ad09d37fff02fffe67ffd74d03218bfff80a729252cf14e36ffff3d29ba0cacba17de0160fff5c7d68bee36bfff87f2f25f2b5555555555555555555555555555555555555555555555555555555555555555555555555555555555557a61085236b0a39893352c807e3906f15d902f8c9ffeccf88ab182f85b924fff5b69b6fa10b27df
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=4
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: {ci5=_cb
= x-trace: 8_{4j=2\_1a41f9d5bg~je;h22^}5cf427i\e{3}7i=31_\2hecfeh_ha5{8fijae371980e=}69-_;b4\
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 222d5-2bgcg4fd09bda8e7d19ac}g92e-i1915dd}5455jced;
section 20 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1206ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=5
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 24 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f02f2b585ed6950958d27d8fff4ce07ffc943ffd9dd77ffae0169dfff9ff3ffbffecdff27fffc2fbff93cce361fb18ffe19b34d03e16bfe7ff9f6109279276e604cdbffffc1ffffc36fffc583ff1627ffe8a4fff05ff20ffeccdffff0959ff8b009ff3f5db817d93ee594a32bdfffc1aff8b15ffffcfb717ff812bae9463ff9f6b48e7dfff8567ffd9bfff7ffb30cd374727ffebc033acfffe2c7ffe7df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: }i61^f1~h77~60-h9||~}g|h{2;|hg651;aa|i5ig=914|^;11chdh5g0g59\9{a5^-1|-c{_d^2|=~g5\f3|-0c|
= referer: 2;c;ffeae8\4|-e9{95_^1e77eaa|;-d6;^e3}g{}gaigj6h~80i73{eb^;
section 28 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe12077f5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f15f2b5555555555555555555555555555555555555555555555555557f027d34
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=7
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: }4
section 32 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f12f2b55555555555555555555555555555555555555555555555da91d8c1138e3adffcffec9fffc1d8e798d1fff6471a747ffdfffe1ffe11a03ee3ee4d019a71dff8db93c0e7fff0fffe1ffe1bffc77fff84dfff9a2b3209a01229d924d174ff927fff0ffe9605a2094dfffc0ad4ff720bfff8372f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: d7b0_6675|~d\7bhgib~d647a~\^c409696g=i467|56h=6\\^i^7\g{4e3d240c_h3cg_j|d\~e=-_1ei\e4h;d2\5f
section 36 0000d1d750882f91d35d055c87a75187606c47fe1207ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d960809f61181d69a8062038ff470927ff9ff27fffe127f2df2b26c190b22625c7e66697e657b337d5e5f7b693265375e3638353d306369627c3d66335c6369612f02f2b585ed6950958d27de311ffff6721bffd91a181d67ffcfff0cf9637209e494d1cb37ff9d16e8e7ff66e8d3914a60ffc19a318fedc76671b9fffc6a48bfff2ccc4dbbfffbfff809ce904d3826fffdfffc20fb58a20c7fff8a322df7fffc0cccb1922fffc2fff5cf
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=9
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 10c;1a0744=a2069j6cd^|h\d
= x-trace: b\~fi~e{3}^_{i2e7^685=0cib|=f3\cia
= x-request-id: ic9}hci}d4a073^^i9eb6=hdfibfg^j-j6~gj46_fi1|aibaa;67g65h^4d_{-3_57{\26j=gh0g{\=;-e21b{eac-;\i3fbc_{2}6
section 40 0000d4d750882f91d35d055c87a75187606c47fe1200835f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=10
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 44 0000d1d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190bc204f1ffff0e93065180446cce2d34ee7ff46437ffe2144f4621f4e8b4e479cfff7ffa58bfff841ff3fff83e2ffe83edb2f4fb7d62c7fffbfff41fffc1c599fb83fe392f02f2b55555555555555fd771efffdfffbfe0ffff44f7fcfffe104502d390719560c82fffcd3b1ac359d8a76cc36bfe13efffc73fff83a489c27dfdb66ff84fff4d3fdfff669fed669bfff4446fffc8ba7ff637d65a623e50196fb83a3ef146dc6d9b
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 0hb\jg1fa02c5i6-gh6~aci{ce28b2ajj-hc86}~e_\=|\92~0;5ej;9-eb{{=\6-3;=|6
= x-nnnnnnnnn: 68{{|a{_8|\=_=-hcabe-1d2{47b-a-7_h5ia4|c;^6\7c_6c;;5i|c}ih;~gh;-45}2c5^_j~b9--gc9e0i-;=j98ea5b5i
section 48 0000d1d750882f91d35d055c87a75187606c47fe12008b5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f1ef2b5555555555555555555555555555555555555555555555555555555555555555555557fa269a6bffb27fff0766e84fff1b1f4689fff9c68c29bffcfff2623c42fdb86095ffffd2f1af2b55555555555555555555555555555555555555555555555555555555555555fa2fffe124019dbfffe1fffc1b10e51b71342e9f656422049fff80307ff41fff8527ff9
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=12
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 444~d\7gjc^5aj4c{64i2g^^gc8ce;6i1e9{
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: \d=1h5\\52afa5_42j;e3120d{0a0~0{2d^
section 52 0000d1d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 56 0000d5d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d272364627b5f6a2d5e656869333630677e317c335c617c7e2d325e5c3737673b63625e3b332f11f2b55555555555555555555555555555555555555555555fd62adffef46e3fff3ffc74b2b6c83a7437dfdac612d3f46dd88524ab4a499cfffe1ff1b7676bffc07ff5a64aecd392503a404e137fc7a6fffe03fbfff59133f6e4c2303ffb1b66782589c716ff9ffefffb310dfffc2717
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: db{_j-^ehi360g~1|3\a|~-2^\77g;cb^;3
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnn: e-}j5b^^7ef530jji;;-i2-hj57_2df-fcg6\|57h4^0~43e7ghcf07c0h1i|8g\a;}323;6g2i0~b5i81e_66-|}}gci\h2
section 60 0000d4d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5dd7ffeffff0ff8dbcd8c82fff3ffcfff3fff39ffeb4d4fff249ca572293fff7dc0b7ffbffdfffe0d11dffec63ff859defff235a0e8558ce2ccc1ffd92427471e98469ffe3e31bbd1a3016fffdfffc276dc9dd9c6cc0b748ff
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: ~\|585ac2^^^{6}44h|dhee6_d{;=-}~\4c7~ba|eh8^b-=je-i6-3=~ddcj68g2ih|9aa7j4i0-{\h56h7ha3=-jb
section 64 0000d4d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5def0cedc7002064310a61ffce9f7ffeb8499b9ba7ff7fff4d3b539bffbfffc3a48fb6fcbfffc276d9fff228df2fff828e61be5663823944d7fff083fff803ee427ff92826956fff1cfb6a3e917d8bfff040d4b20c862059fffe123bffd9841ffefffee9fffbfe3248e06e60bbffe3537f
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 1h5b=0=31_2ga|j;}6cg5gj~{gh4hi~\jd959f\h53^_b9e^2bga9e3b=bf24\=\0;dc^f0gf-^6;4bj_;2{104fdacic13\d7~g21~{j{|3cb=5g17^4g
section 68 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d05326234637c
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 2b4c|
section 72 0000d4d750882f91d35d055c87a75187606c47fe1200bd5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190b2a3962693b3d3d305e696a613b7e395e7c2d63617b6864353d347e327c695e337b35655e3566617c5e3b6a55c79c1ffe81a0ffcff8f91c985ffd967648b46dbae82567fff848433e49a465b81a9672b2d3ffffc229feddfff7ffb17ff64ffefffee9d0cf1826fb34cd4f2cf397a7fff0fff1e9bf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=18
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 9bi;==0^ija;~9^|-ca{hd5=4~2|i^3{5e^5fa|^;j
= cookie: h0}041||9c6g2~fh3c-b5770f3\dci9cgd35=4fhe349\_h;7}~_~d~{jji8i1i;ig4hfhhej\^8g
section 76 0000d4d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 80 0000d1d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5dea0c7fffc3a4f24733ffff9e9bffc205cfff6569f37ff7ffb10e459f81f0cd184058e6346ffdadffe4dfff87fff80cc4195fe849a3ff8dbad91993fe0a274ab3a45a5140667a45d198fa7dbdfffc02cb23fff7ffbff02b4c2fb14c367fff84acc9fff8827bfff805affecb
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 1b\jhdbg9{8g^c16}f49i~~_ad-9=91gb10ebgib9;-^g{a{03_1f9jcgb|575c3d|2_7e-7c-f2=i3j_j3bj;8\133a}~|1-g2;2ga3\f3d{c28\14~f
section 84 0000d1d750882f91d35d055c87a75187606c47fe1201075f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=21
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 88 0000d4d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f03f2b55555555555555555155e636432357e7c7c7c676a657b625e353062395e2d2f02f2b585ed6950958d27ef81f83fff7fff0956ff9ffecef89ffff66fffcdcaf4d189c944190b3fdfffefffe1347fffc1dfffdffd8a38bfff02413ed3bffeadffde8b33d1e9d9144169c6a518df6da9daffebfffdfffcd7ffe97fe36290850b2127fc69c7228e358a4fff3ec1ffdfb7091fff5cfffe025bfe147f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnn: ^cd25~|||gje{b^50b9^-
= x-request-id: =9={\f-|}h929}g{5f8gb26f21deh;{\gb\7{~_b_{0d2947}-~j-3j8h32_1464faa954h4~9~{4{f|52dce131c|466_bb-ec^;0~;6cb~6\2-|ea
section 92 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf55d5ff9f7ffe4e4fffc17fffa6941fffc1f37fff0fffcd14ce7ff8dccf19f72700639a514ab7ff86881fffc052ffcff8693ffae46b7ffa1fff5a75c7a0fffe1fffc2433ab7ffa2fbff813082f1420ffe91a9e57fee3e9f2f23f2b55555555555555555555555555555555555555555555555555555555555555555555555555555555f9ee8b7ffaf7ff917fff007d8fee39cbd1f59965c0ffff08cadcefad18e31ff2df2b26c190ba191c0bb3b2f7478b305ffffcdca51fff9ff2780ad48458bffec5ff0c2ff861c6b7f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: |;^hc{19~if0\9i\{4ei6^5g8i96h01bgf2f-^i_0\2f||id~6b-}1}4768=\\di7-}2;|1i218e10~c4hf9;bj
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: j-}8^_\0;a;bhej9-3361\be5h9-baba
= x-trace: d617h38j8eg19{5fea^|h=e4dc-e}_|i2|iab-
section 96 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1201355f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d27848dd18a5f
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=24
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: b7a2f
section 100 0000d1d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf55c17d6716599fffcfcae742745a3fffe1f7ff1b81d18bffd67efffc689f6b352cf21a75a3901fffc3efffc83ffd3411996762662ff9ffe386e8b7ff9fffc2627fff0f
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: 9-6--3{9f6jcj-b\;|5=7a2}3;^4c;-4fhdih-bd0\;^=}i=bi-7_3_|^6ij-^\gc\
section 104 0000d1d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190b185c32303968325e7d2d5e3d5f7b3735357b363d617d61333b
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: \209h2^}-^=_{755{6=a}a3;
section 108 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f02f2b585ed6950958d2703646439
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: dd9
section 112 0000d4d750882f91d35d055c87a75187606c47fe12013d5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=28
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 116 0000d5d750882f91d35d055c87a75187606c47fe12013f5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=29
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
