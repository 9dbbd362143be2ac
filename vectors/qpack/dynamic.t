# Requests as ls-qpack's encoder writes them (pylsqpack 1.0.0), table of 4096 bytes, 16 blocked streams.
table 4096
encoder 3fe11f
section 0 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf551a676462627d5e7c7e2d637b7e2d2d6a356465647c7e2d676a30302df2b26c190b0231692f02f2b585ed6950958d27daffe87ffc07ff5f71bfff7a3ff63ff8c8d973ffb205b82375e9a0fff7fff11efffdd25646e4dd3ffbffd8c616e46e0ff9fffa56de0fffe70cf4bd3fff4d04edcb22dffd237ff2077fe48b00320bffc17fff0fffe1f6467fff82df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: gdbb}^|~-c{~--j5ded|~-gj00
= x-trace: 1i
= x-request-id: ~1^0~965}j9;a|3a36~d15=b78g=}{c8{jf3a6gj~~ba15d5=|{f581{6i8fj{g=h5fd-~c5|=7|d-01d2^2\\;c3\-
section 4 0381d1d710518860d5485f2bce9a68115f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df55b52baffff60ffebeb461780e17ffdfffcd44efd82569a83ffa67a7281a5bfff8413b931ba7ff60fffdfff9f2fd967fb03ee0659c137f
encoder c08f1d665cbe474d7415721e9b8f34d33fff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: e79~=~9-b1806e}{4_7;0f44=~i8he04-\=h6gij~={{9e;eh;0961fh0g
section 8 0300d5d750882f91d35d055c87a7c180dddf5591ff9d3efa3269a45bffc90d37fff013518f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: |j;j3igd-^dig\24ba
encoder c0882f91d35d055c87a7dd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
section 12 0581d4d7105187606c47fe12067f8011df5520393b32613b685e7d333d38383b2d337d685f3b2d5c5c7e2d3d387d685f662d645d28692d3d645c33687c323d3d2d66697d33353461397d33365f5f5e7d665c2d307e61327b355e646269559283fe4ce064fff5e69d9a06dc1adff3fff05c
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=3
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: 9;2a;h^}3=88;-3}h_;-\\~-=8}h_f-d
= referer: i-=d\3h|2==-fi}354a9}36__^}f\-0~a2{5^dbi
= cookie: =|g61d}847g=56a-|{16
section 16 0781d5d783c182dddf00d47c2b466308518c8cfff8cad044178d24fd3ec4e4fff04d4d297ffcffe93fe7fc5a66d677ee7fffc50c4b7ffefffdff3fff32d74ffebab17ffbfff9b0ffcfff67340288ccc52b63ff9f7ff0c19d6e806db65f589f01135e6a7d3262637b385c307c65367b312d38615f55885ba19f91e2fffb3f
encoder 69f2b585ed6950958d270065f2b26c190b00
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: 91-bii22bac3^3-=_18idhj;26h|24gfe^~c||-g5-7;h{e1_-{{|{34j~7-e~{51|}hi=2_i3_f5a|;|i1h-j05539-c
= x-trace: ^j}2bc{8\0|e6{1-8a_
= cookie: -ji9d8e}h
section 20 0304d4d785c184dddf2f21f2b5555555555555555555555555555555555555555555555555555555555555555555555555555515395c3d397c635f5c5c377c2d7b6a67353d6736633b5dcefffe123b21999ffff15b6dd8db6bfff81606e76e575ffff7ec72fffe03503cdc5d3fff3416598892ac159618df8e2fbfff01ff2471b6fffbfffc0b1cd032b14127ffb1040dfff5c77ffbffe4dd195d9c763fffdd3a07fff3620386fff5c0ccb37ff2404c083a15e589ff2317
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 9\=9|c_\\7|-{jg5=g6c;
= referer: \d7di3h{e557b54\e=5h5f79};af{04=85_j{4133_cf-1--aa9b_;^0|d655~\ebg=3-e0d}_105~67~^gj3
= referer: 7b{jj1{5206i}61g-5|d0g0=je8-c|b2
section 24 0880d4d783108482df
encoder c18860d5485f2bce9a68
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 28 0305d1d7865187606c47fe12077f85dddf55cc8a081ffffe111268e259a5bffb2c914bffec6cfff64fff3ffc5861fff7fff17fe7476037ffbd2566300d97967bffcfff236de723fffd27ff7fe32f41ffe09a20e213ef4456fffacbb21166ff55cb1b231c5149ffe926fff642b6337dbd3b5f7f72fff9187ffbf7041ffe97efffa4e8b3b036d45ffe7fff037ff91c118e31ffff05a2fffcf905d3a7dbf2fffbfff9b7e3005efb69b8a52ffc9355507c3335327e7c34697c7e38306a6962392d3d7c7b39307d393b617b65397b6a38335c6832325f32397e5c687c346a3d613069693366385e7b7e5c7c626a7b657c5c7d3865697d7c7c375f7e5e35313763
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=7
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: _==9\_cgb_-4-~fd_f}b3~d^^-a1}{e|j7=i}jf3b0a38-8^^b586b{d~|38=^24ca_298_e5~37dc-5
= cookie: a3aa__d}cg}de5ai;8h4;;f^b1~;==}e;~cj-7=54_^\i^b=baba\-_{9c2jj;9f}{59b018;45_fe|d
= cookie: |352~|4i|~80jib9-=|{90}9;a{e9{j83\h22_29~\h|4j=a0ii3f8^{~\|bj{e|\}8ei}||7_~^517c
section 32 0602d4d786c185dddf42cf13504dffe19effe8ffe09a748effc0fff49389e73fff81bfff87ffe700db8f4d34d3125ff90740bcf045ffd73ffd2cf1fff8d87ffd902b35ff08503e3099c7c724737ffbffebcdbcf4c6fff3ffa6675ddb7bfff3e537ffe8c134a220e38dd0fffb034dfffbffe7fff027ffafac2fff24808603d3ac4fff227052b5ffeca19fee79633063fffe0effff01fffefff2337fc720fb5bffadc72141ffd1cd17df479e6bffab48d802614816c52b5f
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: 24=g^i8~a|247c7|1~ch286\i\{60568ggggcf|=j18812~6}ehb^51}d1-4|ce09a1i69adbg}}8588gi^~i3
= referer: 8{9ei{b0gf2cabb71}=45}^\c}9-2^d=ci08h-c^_62f4}f1h;hfbi1b\7\a{^bi|6=;-~5bde0~ag_;j884~-d501i2d152f4
section 36 0800d1d7848085dddf
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 40 0503d1d7845187606c47fe1200838583df5d0c5e5e327b612d633430307b68
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=10
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: ^^2{a-c400{h
section 44 0602d5d786c18583df429581a77fff815afff4a66599ca333dfffba03fe4a66f
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: =47\e4}ei33heai8{j0|fi5
section 48 0305d4d786c185dddf
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 52 0701d5d7845187606c47fe1200b38583df41db982c9a7fff27905d19fffe12c7fffbefa1561b5ff1c0385687ff3fff39d250b31fff8ccc67a52fffe95cffecf04b33e4fffc4fffe0ffdb7ffd34b315f8a05bfe4cf74986483edc67fff7dfff91b9ff020e9fff96fff5b20d9fff3f5d90fff6234f2bdfff831cb005e7fffd187f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=13
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: g13ih^hd2j3\fb{;je-a4|606e4a|{6jf13b^3gi8fe{f6~h=fg9c{c\9;5~ifge9_=-|g8jgac=;63{;^b6|10j{-}5ca3^
= referer: }_ihf8{1bf=189}a1
section 56 0701d4d784c18583df41d983ffd13dffdfffe11f4fff64fb6da706e7fc74a39c93bf2cb27433bfff86393ffc83ee630ffff3eb3cd393c0d481fff648258cd234dbce7ff4d24920bfff815d7a7fff672c4f35f6297fff0d6140cbffff9f723147ffd0805f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: =}28~\bj}d;546a6|7eahch9ffdji7{aad^=;gia{9-846h=4d1}d=fbid4586~iddd2\e78h}he_84;2f{a-2=39{96b2b~102
section 60 0503d4d7865187606c47fe1200b78583df2f24f2b55555555555555555555555555555555555555555555555555555555555555555555555555555555555063036655f5e315dce586191c94806667221ce5645ffdfff1a5a3ff9fffc3fff8471fffab3e6fff227ccb3bff3ffc8df90d23836678fa49d02b4b246ffff8e7fff0311a79dfff0ad48e17fff874fff197ba1a7fb27dbbf5dc581e9d614cec016bfff83bd1f6dbfffdd07382799c744f087ffe065fff6703a06cdd3fff84dd23ffe8e5748ffffa16a28dc17ffe683f7ffd91c9e2fbfff0ac822096299f7ff
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=15
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 06e_^1
= referer: -a1d6fc03g6_ahe32~^4-b|\\bb}-9i^_9i-7|^b9did6a3hbjdj1-fdb9^6\ic487^e4d6e\j^38jih;c;7
= referer: =8h-2g7=14\7j955{jah0hg67282a^1f}h0705ij\gjb~af7c9}14_b62{41;~d6h_;^e30_1e_g99
section 64 0503d5d7845187606c47fe1200b98583df55affff641b3ffd75e91b13c567ffdff86fff5f7e417ffad40d74fb0f4089c75f12c01ffcfbfff5b135d2577a7fc2b2f7f2f0ef2b55555555555555555555555555555555555555f1d637b5e30307b397b683067335c5e61616269385c356a5e377e6a373933
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=16
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: }da3~78d528e3}|i}99d2}4=4j;1j126792-0a|;}524jf7j|e38
= x-nnnnnnnnnnnnnnnnnnnnnnnnn: c{^00{9{h0g3\^aabi8\5j^7~j793
section 68 0800d5d786808583df2cf2b55555d00b43888e4f2321704b3bffe3c5fffe1332d89affebffffc1e040e7dfffe24a10049fffba392c8b7fff0e9003fff7ff8e7fff065695ce9fff9c99cfffe13332c6b3cfc817965bee38191ffc1f4820747f41adfffd23c388734adfff5d78dffeadfffc1d70af4ccbf216573ffae4839092b8dfffe69f67fe7fc8d61c5ffd7805
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnn: 14a_c6hd3162-7^8e\g3524~9\80=6;{cf101c{j6fd-\j=0{^6\3-f6j{6g6\g3fb-89d18--;b=3a|aj==7a
= x-trace: {d8a_agf5~78i}-\76e8g39def6~6dadcf65{493||b-a_~80e
section 72 0602d4d786c185dddf42e4fffe0f103334f8871cffffc04f7ff636a37e79e78e5fff1efff6500ffff87ffbfff9ae8cbe6fffe0d927885140f4ecf417fff081b1ffcfff6724b284528ffff87413a1900efffa20096248cfffefff02ece299ae819d98cd10c1ff0b3c0524c677fff7fc2f02f2b55555555555555fb36bfff7fcff93ca10cdf6212cf4dd1b7269fffd6a22c067ffff834f05d9c4fb9317ffdffec9138477ffd37dfff7ffa21c503c5f
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: \8c1g492abh\28~b4b9hhhbf^8}f0a\}{4j39i\5ch_2_=8h3j2\=5a|}hcff12fa\j271d07}202-cd3{^17h2g4j1h3bi_a0|eh=ecgi7{|
= x-nnnnnnnnn: 4{||hf11g;22-8gj56gh}4_e=i9\4817h296ge}~d_6c7}i;~~2a_=8e
section 76 0404d4d7845187606c47fe1200bf85dddf55d2fffe1211dfff03ff1cffef498907424fd0bfffa017408bffdfff1affeadfffc16fff7ffd2fff8694618bfe45007fff83238a081a9fffd107fff82d24bd2437ff8ffdcf04518a37e5666ffef428bee377a2df
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=19
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: \dc7^1|6~jgc=jchje{=2j12}^4~-\-}}e^ifa1_|_=1\3a_==4h}21\-dfjdi^9;h=_b2b9f3g~je2;b7j-
section 80 0503d1d7845187606c47fe1201038583df2f10f2b55555555555555555555555555555555555555555572c5e61647b7e7e2d6a5c625c7d38393d62685f64627c30677e5e313b5e63333d3b323b397b686936633133345e2f0cf2b5555555555555555555555555555555557fd683fff7ffe59669c8e282666273ffdfff3ffa56fffb34707ffeff8e9a5765ffead3ba69e3942164932dd0a58a06e26e78271b90345fff160c1d0bfffc202bcf4e05bfff48eb3ffd96288afb5fffbffa2fffd3490741ff
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=20
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnn: ^ad{~~-j\b\}89=bh_db|0g~^1;^c3=;2;9{hi6c134^
= x-nnnnnnnnnnnnnnnnnnnnnn: ={{--46b_=g3_6}^~e5~gb={|7if7f~-h7ihbf113cg-jee_=5_5h=ha6=4e^-1=je\=e88h0-{d73~f__e94{~2{gd=ja
section 84 0701d1d784c18583df42d0e8d49281a69e0f495d24636bffad93ee007dbc69166d96e6ff8e8061fff08b7459ffff3ed680cb4e42fd8c7ffd17ffe2f40cab39ffeffff0fff22964ff9f7fffba7dbe014ab7ffe0827095dfff03fffb419b8e391eff8b7ff9fffa017fff08e66d96fee5e8fbcb10b04f295a5b
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: j4df04481jf7cba4~5c;=0;8id-535g|70a1^c-j-9^;-=i-hce;aa~2{ej1f-6}\^_fd|;{j;902f-{10h1e7^1{
= x-trace: bbd8|-^{=2\bg535;fj98-ce=hfe4-
section 88 0800d1d784808583df4100
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: 
section 92 0503d5d786c18583df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 96 0800d5d7868085dddf55e3fb945d06d7fc7a20bd3364740e34cbbffe2dffe944fbe4ff9ff23fb880fc5d1e7990b712c5e9ffe81cfffe0b0fffd9a78beda808589e0baf32172779a11a49e5fffe133bf724fffefffe32d24ce44681b9dd6a775e824fb73ffc79e27ffacc44ff8d172f25f2b5555555555555555555555555555555555555555555555555555555555555555555555555555555555557c3720fffdffd916fb7246bfff44276599e6fffa4287ffafc629e30c6381f99ae9240567ffcfffe047fffd99e93ffcfbfff43287effff03fe7ff7ee21fffe349385cfb73f5d057b39316431
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: ;f2ja4|8_18g5c706437^-}e299c||b;_09_j88315_-ej}06\-a}gh_;4=ce_8178316h842idhf\g7;dh}{i-dg6_i=5h74h78=d;6^88c}3_c|4e
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 6={~d-;6d4{_27fg85~ce1~9b2hb1ba=9g4jd=e3^\c9}g8d^;}1f1;{0|~;_a{idh16;6
= referer: {91d1
section 100 0701d5d784c185dddf55d3687fff9e6a4ff836e427fc34a577ffce9ffec510bfff15efffe06760ffeffc3343180adb8dfffb1ffcfffd19257ffff2d13e2fffcdcb07ffad0a7fff5f7081039374fffe0579f8e697fff07eda03cd0bffc08341c66c138e76bfff83f1ac5fb88a61188e182f3ce3c5823fff1dfffe1ffd93ffd9bffacacf2d207fe74ff9ff27fff7fe162274ffe83ec2e7ffab4e1fff5d80408e00440fffe1ff3f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: 4a{84d|a5dc|ife7^j}__2{e8\i7=~|i4aa0e565}b|{bcf9{-_92{5f=}42h}96c106gj\e89bgf{1;40842^10
= x-trace: 50hah4\9b-e;_ei2ic6i18868e=b^7\~d}g~3-8-d1|j||h}|e_cj~0;16}-h1}7=20b=0_0\|
section 104 0503d4d784c18583dfc5
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: 
section 108 0800d5d786808583df41ee95e217a7df437dbcec5ffe009ffe4cf7ff847a5e8f05a0fff6067efffdfff09fff9b07fff094dfffc0ce8fffb2ac69e01cd189a9bfff83fd3ffd7169269fee32bf1909ff3fff7fff0781f651cc6756fffe03581ffe0e6003ffdfb1acd89f8bfe0258fffd67fe46459f07ff5b7c4642035e3038410733393d3b7b3066
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: f8cej;ji;87_^0c^g8^c8fj8141~=3;}^c{50\fi\i7a~f-ih=agb24g\9j}6-dgh;be9bcc|{\80;eagi7-\a-0^ag00};a-529_|0fb}3|bc-90~592i
= x-request-id: ^08
= x-trace: 39=;{0f
section 112 0701d1d784c185dddf41af0bb13dffeba589f7813fdbe6fffd037ffd8fffab745bffaec0d3a60b8e18a61badc8b7fcffe84ab4e2ffe93ffc1be542453667377e666939313b655c667d3b7d5e7e663661317e3d68347d35672d5e315c7c323467307c5c61645f3b61637c2d5e325f7d3162683832335e5e325f2d7d68616961693d
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 17_8}7e_980h;9i{=5~b~-j-~7=47i166ieia75d-|~1e-h2~c^a9e
= x-request-id: 6g7~fi91;e\f};}^~f6a1~=h4}5g-^1\|24g0|\ad_;ac|-^2_}1bh823^^2_-}haiai=
section 116 0701d1d786c18583df41265c3567387c66357d5e7d7e697e657b6a6a633061357d5c6866305f3939346738625c7c677d5c41057e7e7d346655e9e910ffe485fff065fff3a15cfb0c9ffd95a8844640b7ff91402fffe00fffe11bd3cdff16807195c7e7799824fb1c7fffc004fffe1248d95c6472cf13a55bedd724703fff9bfff0819bffdfffe13fd90d04a331891cce46cffc742618208d669de8e82067ffdfb80c2f
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: \5g8|f5}^}~i~e{jjc0a5}\hf0_994g8b\|g}\
= x-trace: ~~}4f
= cookie: j_a|de^ae^je6;1d~f4_2c30-^_=2\0\b8hg|-=abe69h83=d;ab\0c\dd5e63afh_7e-;76d61{5^c1g}\h;ci=faiicbg6b3|71ia0=b-47j70=3};=i2
